// SPDX-License-Identifier: Apache-2.0
// The finish unit with cells. They are written through a port too; what the unit writes comes out as records, and one bit tells whether a clock
// has any, so that a bench need look at nothing else.
module finish_unit_bench
  import gharial_pkg::*;
  import seat_pkg::*;
  import slice_pkg::*;
#(
    parameter int unsigned CellUnits = 16384
) (
    input logic clk_i,
    input logic rst_i,

    input logic        load_valid_i,
    input logic [ 2:0] load_space_i,
    input logic [26:0] load_addr_i,
    input logic [31:0] load_data_i,

    input logic                 poke_cell_i,
    input logic [SeatCellW-1:0] poke_addr_i,
    input logic [16*Halves-1:0] poke_data_i,

    input  logic                        seg_valid_i,
    output logic                        seg_ready_o,
    input  logic [$bits(segment_t)-1:0] seg_i,

    input  logic                                       res_valid_i,
    output logic                                       res_ready_o,
    input  logic [1+SliceW+2+SeatW+32*SliceRows - 1:0] res_i,        // last, slice, vector, seat, sums

    output logic                                   event_o,  // any of the valids below
    output logic [          1+SeatActW+9*Cols-1:0] act_o,    // valid, address, mask, data
    output logic [      1+SeatCellW+17*Halves-1:0] cell_o,   // likewise
    output logic [1+1+16+SeatW+16*SliceRows - 1:0] logit_o,  // valid, last, slice, seat, data
    output logic [                            1:0] retire_o  // valid, thread
);
  logic cell_re, cell_we, act_we, logit_valid, logit_last, retire_valid, res_last;
  logic [SeatCellW-1:0] cell_raddr, cell_waddr;
  logic [SeatActW-1:0] act_waddr;
  logic [16*Halves-1:0] cell_rdata, cell_wdata;
  logic [Halves-1:0] cell_wmask;
  logic [8*Cols-1:0] act_wdata;
  logic [Cols-1:0] act_wmask;
  logic signed [31:0] res_sums[SliceRows];
  logic [SeatW-1:0] res_seat, logit_seat;
  logic [1:0] res_vector;
  logic [SliceW-1:0] res_slice;
  logic [SliceRows-1:0][31:0] sums;
  logic signed [15:0] logit_data[SliceRows];
  logic [SliceRows-1:0][15:0] logit_word;
  logic [15:0] logit_slice;
  thread_e retire_thread;

  assign {res_last, res_slice, res_vector, res_seat, sums} = res_i;

  always_comb begin
    for (int unsigned r = 0; r < SliceRows; r++) begin
      res_sums[r]   = signed'(sums[r]);
      logit_word[r] = unsigned'(logit_data[r]);
    end
  end

  finish_unit u_dut (
      .clk_i,
      .rst_i,
      .load_valid_i,
      .load_space_i(space_e'(load_space_i)),
      .load_addr_i,
      .load_data_i,
      .seg_valid_i,
      .seg_ready_o,
      .seg_i(segment_t'(seg_i)),
      .res_valid_i,
      .res_ready_o,
      .res_sums_i(res_sums),
      .res_seat_i(res_seat),
      .res_vector_i(res_vector),
      .res_slice_i(res_slice),
      .res_last_i(res_last),
      .cell_re_o(cell_re),
      .cell_raddr_o(cell_raddr),
      .cell_rdata_i(cell_rdata),
      .cell_we_o(cell_we),
      .cell_waddr_o(cell_waddr),
      .cell_wdata_o(cell_wdata),
      .cell_wmask_o(cell_wmask),
      .act_we_o(act_we),
      .act_waddr_o(act_waddr),
      .act_wdata_o(act_wdata),
      .act_wmask_o(act_wmask),
      .logit_valid_o(logit_valid),
      .logit_seat_o(logit_seat),
      .logit_slice_o(logit_slice),
      .logit_data_o(logit_data),
      .logit_last_o(logit_last),
      .retire_valid_o(retire_valid),
      .retire_thread_o(retire_thread)
  );

  // Whenever the port is free, another reader takes it, as the rest of the machine may.
  logic [SeatCellW-1:0] other_q, cell_address, waddr;
  logic [Halves-1:0] we;
  always_ff @(posedge clk_i) other_q <= rst_i ? '0 : other_q + SeatCellW'(37);
  assign cell_address = cell_re ? cell_raddr : other_q;
  assign waddr = cell_we ? cell_waddr : poke_addr_i;
  assign we = cell_we ? cell_wmask : {Halves{poke_cell_i}};

  lane_memory #(
      .Lanes(Halves),
      .LaneW(16),
      .Words(CellUnits)
  ) u_cells (
      .clk_i,
      .we_i(we),
      .waddr_i(waddr[$clog2(CellUnits)-1:0]),
      .wdata_i(cell_we ? cell_wdata : poke_data_i),
      .re_i(1'b1),
      .raddr_i(cell_address[$clog2(CellUnits)-1:0]),
      .rdata_o(cell_rdata)
  );

  assign event_o  = act_we || cell_we || logit_valid || retire_valid;
  assign act_o    = {act_we, act_waddr, act_wmask, act_wdata};
  assign cell_o   = {cell_we, cell_waddr, cell_wmask, cell_wdata};
  assign logit_o  = {logit_valid, logit_last, logit_slice, logit_seat, logit_word};
  assign retire_o = {retire_valid, retire_thread};

  logic unused;
  assign unused = &{1'b0, cell_address, waddr};  // wider than the memory
endmodule
