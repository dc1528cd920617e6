// SPDX-License-Identifier: Apache-2.0
// Moves whole state: zeroes, copies, saves and restores slots, and loads features (a restore of activations alone). One job at a time.
//
// A slot is its activation units, then its cell units; in device memory they follow one another as words.
module slot_engine
  import gharial_pkg::*;
  import host_pkg::*;
#(
    parameter int unsigned Rows = 32,
    parameter int unsigned Cols = 8
) (
    input logic clk_i,
    input logic rst_i,

    input  logic      job_valid_i,
    output logic      job_ready_o,
    input  slot_job_t job_i,
    output logic      done_o,       // one clock

    // Words of a restore.
    input  logic        data_valid_i,
    output logic        data_ready_o,
    input  logic [31:0] data_i,

    // Words of a save.
    output logic   save_valid_o,
    input  logic   save_ready_i,
    output write_t save_o,

    // Activation memory.
    output logic                act_re_o,
    input  logic                act_re_ready_i,
    output logic [ActAddrW-1:0] act_raddr_o,
    input  logic [  8*Cols-1:0] act_rdata_i,
    output logic                act_we_o,
    input  logic                act_ready_i,
    output logic [ActAddrW-1:0] act_waddr_o,
    output logic [  8*Cols-1:0] act_wdata_o,

    // Cell memory.
    output logic                 cell_re_o,
    input  logic                 cell_re_ready_i,
    output logic [CellAddrW-1:0] cell_raddr_o,
    input  logic [   4*Rows-1:0] cell_rdata_i,
    output logic                 cell_we_o,
    input  logic                 cell_ready_i,
    output logic [CellAddrW-1:0] cell_waddr_o,
    output logic [   4*Rows-1:0] cell_wdata_o
);
  localparam int unsigned ActBits = 8 * Cols;
  localparam int unsigned CellBits = 4 * Rows;
  localparam int unsigned WideBits = (ActBits > CellBits) ? ActBits : CellBits;
  localparam int unsigned Words = WideBits / 32;
  localparam int unsigned WordW = (Words > 1) ? $clog2(Words) : 1;
  localparam logic [WordW-1:0] ActLast = WordW'(ActBits / 32 - 1);
  localparam logic [WordW-1:0] CellLast = WordW'(CellBits / 32 - 1);

  if (ActBits % 32 != 0 || CellBits % 32 != 0) begin : gen_check
    $error("%m: activation and cell units must be whole words");
  end

  typedef enum logic [2:0] {
    Idle,
    Part,    // activations, then cells
    Read,
    Wait,
    Stream,  // words in or out
    Write
  } state_e;

  state_e state_q;
  slot_op_e op_q;
  logic cells_q;  // at the cell part
  logic [15:0] left_q, cell_units_q;
  logic none_q, no_cells_q;  // nothing is left, of the cells: as they are when a part is looked at
  logic [ActAddrW-1:0] act_q, to_act_q;
  logic [CellAddrW-1:0] cell_q, to_cell_q;
  logic [63:0] addr_q;
  logic [1:0] wait_q;
  logic [WordW-1:0] word_q;
  logic [Words-1:0][31:0] buffer_q;
  logic last_word;

  assign job_ready_o = state_q == Idle;
  assign last_word = word_q == (cells_q ? CellLast : ActLast);
  assign data_ready_o = state_q == Stream && op_q == SlotRestore;
  assign save_valid_o = state_q == Stream && op_q == SlotSave;
  assign save_o = '{addr: addr_q, data: buffer_q[word_q]};

  assign act_re_o = state_q == Read && !cells_q;
  assign act_raddr_o = act_q;
  assign cell_re_o = state_q == Read && cells_q;
  assign cell_raddr_o = cell_q;
  assign act_we_o = state_q == Write && !cells_q;
  assign act_waddr_o = to_act_q;
  assign act_wdata_o = ActBits'(buffer_q);
  assign cell_we_o = state_q == Write && cells_q;
  assign cell_waddr_o = to_cell_q;
  assign cell_wdata_o = CellBits'(buffer_q);

  always_ff @(posedge clk_i) begin
    done_o <= 1'b0;
    wait_q <= wait_q + 2'd1;
    none_q <= left_q == '0;

    unique case (state_q)
      Idle: begin
        op_q <= job_i.op;
        cells_q <= 1'b0;
        left_q <= job_i.act_units;
        none_q <= job_i.act_units == '0;
        cell_units_q <= job_i.cell_units;
        no_cells_q <= job_i.cell_units == '0;
        act_q <= job_i.act;
        cell_q <= job_i.cell_unit;
        to_act_q <= (job_i.op == SlotCopy) ? job_i.to_act : job_i.act;
        to_cell_q <= (job_i.op == SlotCopy) ? job_i.to_cell : job_i.cell_unit;
        addr_q <= job_i.addr;
        if (job_valid_i) state_q <= Part;
      end
      Part: begin
        word_q <= '0;
        if (op_q == SlotZero) buffer_q <= '0;
        if (!none_q) begin
          left_q <= left_q - 16'd1;
          if (op_q == SlotZero) state_q <= Write;
          else state_q <= (op_q == SlotRestore) ? Stream : Read;
        end else if (!cells_q) begin
          cells_q <= 1'b1;
          left_q  <= cell_units_q;
          none_q  <= no_cells_q;
        end else begin
          done_o  <= 1'b1;
          state_q <= Idle;
        end
      end
      Read: begin
        wait_q <= '0;
        if (cells_q ? cell_re_ready_i : act_re_ready_i) state_q <= Wait;
      end
      Wait: begin
        if (wait_q == 2'd1) begin
          buffer_q <= cells_q ? WideBits'(cell_rdata_i) : WideBits'(act_rdata_i);
          state_q  <= (op_q == SlotCopy) ? Write : Stream;
        end
      end
      Stream: begin
        if (data_ready_o && data_valid_i) buffer_q[word_q] <= data_i;
        if ((data_ready_o && data_valid_i) || (save_valid_o && save_ready_i)) begin
          word_q <= word_q + WordW'(1);
          addr_q <= addr_q + 64'd4;
          if (last_word) state_q <= (op_q == SlotSave) ? Part : Write;
        end
      end
      default: begin
        if (cells_q ? cell_ready_i : act_ready_i) state_q <= Part;
      end
    endcase

    // One unit on.
    if ((state_q == Write && (cells_q ? cell_ready_i : act_ready_i)) || (save_valid_o && save_ready_i && last_word)) begin
      if (cells_q) begin
        cell_q <= cell_q + CellAddrW'(1);
        to_cell_q <= to_cell_q + CellAddrW'(1);
      end else begin
        act_q <= act_q + ActAddrW'(1);
        to_act_q <= to_act_q + ActAddrW'(1);
      end
    end
    if (rst_i) state_q <= Idle;
  end
endmodule
