// SPDX-License-Identifier: Apache-2.0
// Brings an entry's features into its seat's scratch: words of the host block's reader, their CRC, units written to the activations; then zeros for the
// vectors that the entry does not have.
module feature_loader
  import gharial_pkg::*;
  import host_pkg::*;
  import seat_pkg::*;
  import crc_pkg::*;
#(
    parameter int unsigned Cols = gharial_config_pkg::Cols
) (
    input logic clk_i,
    input logic rst_i,

    input  logic                    start_i,    // one clock; what follows stays until done
    input  logic     [        63:0] addr_i,
    input  logic     [        15:0] units_i,    // at least 1
    input  logic     [        15:0] pad_i,      // units of zeros behind them
    input  logic     [SeatActW-1:0] target_i,
    input  logic                    checked_i,
    input  logic     [        31:0] crc_i,
    output logic                    done_o,     // one clock: all can be read from the next on, or it failed
    output failure_t                failure_o,

    output logic         read_valid_o,
    input  logic         read_ready_i,
    output read_t        read_o,
    input  logic         data_valid_i,
    output logic         data_ready_o,
    input  logic  [31:0] data_i,
    input  logic         error_i,
    input  logic  [31:0] error_addr_i,

    output logic                act_we_o,
    input  logic                act_ready_i,
    output logic [SeatActW-1:0] act_waddr_o,
    output logic [  8*Cols-1:0] act_wdata_o
);
  localparam int unsigned UnitWords = Cols / 4;
  localparam int unsigned WordW = (UnitWords > 1) ? $clog2(UnitWords) : 1;

  typedef enum logic [2:0] {
    Idle,
    Request,
    Words,
    Check,
    Pad,
    Last,
    Done
  } state_e;

  state_e state_q;
  failure_t failure_q;
  logic [15:0] left_q;
  logic [SeatActW-1:0] target_q;
  logic [WordW-1:0] word_q;
  logic [31:0] crc_q;
  logic [8*Cols-1:0] unit_q, unit_next;
  logic full_q, free, taken, last_word;

  assign read_valid_o = state_q == Request;
  assign read_o = '{addr: addr_i, words: 27'(units_i) * 27'(UnitWords)};
  assign free = !full_q || act_ready_i;
  assign data_ready_o = state_q == Words && free;
  assign taken = data_valid_i && data_ready_o;
  assign last_word = 32'(word_q) == UnitWords - 1;
  assign act_we_o = full_q;
  assign act_waddr_o = target_q;
  assign act_wdata_o = unit_q;
  assign done_o = state_q == Done;
  assign failure_o = failure_q;

  always_comb begin
    unit_next = unit_q;
    unit_next[32*word_q+:32] = data_i;
  end

  always_ff @(posedge clk_i) begin
    if (full_q && act_ready_i) begin
      full_q   <= 1'b0;
      target_q <= target_q + SeatActW'(1);
    end
    if (taken) begin
      unit_q <= unit_next;
      word_q <= last_word ? '0 : word_q + WordW'(1);
      full_q <= last_word;
      crc_q  <= crc_next(crc_q, data_i);
    end

    unique case (state_q)
      Idle: begin
        failure_q <= NoFailure;
        crc_q <= CrcInit;
        word_q <= '0;
        left_q <= units_i;
        if (start_i) begin
          target_q <= target_i;
          state_q  <= Request;
        end
      end
      Request: if (read_ready_i) state_q <= Words;
      Words: begin
        if (taken && last_word) begin
          left_q <= left_q - 16'd1;
          if (left_q == 16'd1) state_q <= Check;
        end
        if (error_i) begin
          failure_q <= '{fault: FaultBusRead, unit: UnitMemory, detail: error_addr_i};
          state_q   <= Last;
        end
      end
      Check: begin
        left_q  <= pad_i;
        state_q <= (pad_i == '0) ? Last : Pad;
        if (checked_i && ~crc_q != crc_i) begin
          failure_q <= '{fault: FaultChecksum, unit: UnitHost, detail: ~crc_q};
          state_q   <= Last;
        end
      end
      Pad: begin
        if (free) begin
          unit_q <= '0;
          full_q <= 1'b1;
          left_q <= left_q - 16'd1;
          if (left_q == 16'd1) state_q <= Last;
        end
      end
      Last: if (free) state_q <= Done;
      default: state_q <= Idle;
    endcase

    if (rst_i) begin
      state_q <= Idle;
      full_q  <= 1'b0;
    end
  end
endmodule
