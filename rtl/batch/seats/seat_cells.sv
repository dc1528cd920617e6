// SPDX-License-Identifier: Apache-2.0
// Cell states, joint_pred and joint_enc of all seats, int16, by the addresses of seat_pkg. Reads, one a clock: the finish unit always, then aux, then the
// state mover. Writes: the finish unit always, then the mover.
module seat_cells
  import seat_pkg::*;
#(
    parameter int unsigned Rows = gharial_config_pkg::Rows,
    parameter int unsigned Lanes = gharial_config_pkg::Lanes,
    parameter int unsigned Width = 4 * Rows  // derived: Rows/4 halfwords
) (
    input logic clk_i,

    input  logic                 finish_re_i,
    input  logic [SeatCellW-1:0] finish_raddr_i,
    input  logic                 aux_re_i,
    output logic                 aux_ready_o,
    input  logic [SeatCellW-1:0] aux_raddr_i,
    input  logic                 mover_re_i,
    output logic                 mover_re_ready_o,
    input  logic [SeatCellW-1:0] mover_raddr_i,
    output logic [    Width-1:0] rdata_o,           // two clocks after any, for one clock

    input  logic                 finish_we_i,
    input  logic [SeatCellW-1:0] finish_waddr_i,
    input  logic [    Width-1:0] finish_wdata_i,
    input  logic [   Rows/4-1:0] finish_wmask_i,
    input  logic                 mover_we_i,
    output logic                 mover_ready_o,
    input  logic [SeatCellW-1:0] mover_waddr_i,
    input  logic [    Width-1:0] mover_wdata_i
);
  localparam int unsigned LaneHalves = (Lanes < Rows / 4) ? Lanes : Rows / 4;  // the finish unit writes so many at least
  localparam int unsigned UnitLanes = Rows / 4 / LaneHalves;
  localparam int unsigned Banks = 3;

  logic [SeatCellW-1:0] raddr, waddr;
  logic [Width-1:0] wdata;
  logic [Rows/4-1:0] mask;
  logic [UnitLanes-1:0] we;

  assign aux_ready_o = !finish_re_i;
  assign mover_re_ready_o = !finish_re_i && !aux_re_i;
  assign raddr = finish_re_i ? finish_raddr_i : aux_re_i ? aux_raddr_i : mover_raddr_i;
  assign mover_ready_o = !finish_we_i;
  assign waddr = finish_we_i ? finish_waddr_i : mover_waddr_i;
  assign wdata = finish_we_i ? finish_wdata_i : mover_wdata_i;
  assign mask = finish_we_i ? finish_wmask_i : {(Rows / 4) {mover_we_i}};
  always_comb begin
    for (int unsigned lane = 0; lane < UnitLanes; lane++) we[lane] = mask[lane*LaneHalves];
  end

  logic [1:0] read_bank, write_bank, bank_q[2];
  assign read_bank  = raddr[CellRegionW+:2];
  assign write_bank = waddr[CellRegionW+:2];

  logic [Width-1:0] rdata[Banks];
  for (genvar bank = 0; bank < int'(Banks); bank++) begin : gen_bank
    localparam int unsigned UnitsW = (bank == int'(CellEnc)) ? EncCW : PredCW;
    localparam int unsigned Words = Seats << (UnitsW + 1);
    localparam int unsigned AddrW = $clog2(Words);

    seat_ram #(
        .Lanes(UnitLanes),
        .LaneW(16 * LaneHalves),
        .Words(Words)
    ) u_ram (
        .clk_i,
        .we_i((write_bank == 2'(bank)) ? we : '0),
        .waddr_i(waddr[AddrW-1:0]),
        .wdata_i(wdata),
        .re_i((finish_re_i || aux_re_i || mover_re_i) && read_bank == 2'(bank)),
        .raddr_i(raddr[AddrW-1:0]),
        .rdata_o(rdata[bank])
    );
  end

  always_ff @(posedge clk_i) begin
    bank_q[0] <= read_bank;
    bank_q[1] <= bank_q[0];
  end
  assign rdata_o = rdata[(bank_q[1]==2'd3)?2'd0 : bank_q[1]];

  if (CellRegionW + 2 > SeatCellW) begin : gen_check
    $error("%m: SeatCellW is too small");
  end

  logic unused;
  assign unused = &{1'b0, raddr, waddr};  // bits above the region
endmodule
