// SPDX-License-Identifier: Apache-2.0
// Activations of all seats: scratch, encoder A, prediction A, by the addresses of seat_pkg. A bank for each region and side, so that the state mover
// reads one side's state while the array reads the other's. Reads: the array always; the mover where that reads another bank, or nothing. Writes, one a
// clock: the finish unit always, then aux, mover, feature loader.
module seat_activations
  import seat_pkg::*;
#(
    parameter int unsigned Rows  = gharial_config_pkg::Rows,
    parameter int unsigned Cols  = gharial_config_pkg::Cols,
    parameter int unsigned Lanes = gharial_config_pkg::Lanes
) (
    input logic clk_i,

    input  logic                array_en_i,
    input  logic [SeatActW-1:0] array_addr_i,
    output logic [  8*Cols-1:0] array_data_o,      // two clocks later, for one clock
    input  logic                mover_re_i,
    output logic                mover_re_ready_o,
    input  logic [SeatActW-1:0] mover_raddr_i,
    output logic [  8*Cols-1:0] mover_rdata_o,     // two clocks after it was ready, for one clock

    input  logic                finish_we_i,
    input  logic [SeatActW-1:0] finish_addr_i,
    input  logic [  8*Cols-1:0] finish_data_i,
    input  logic [    Cols-1:0] finish_mask_i,
    input  logic                aux_we_i,
    output logic                aux_ready_o,
    input  logic [SeatActW-1:0] aux_addr_i,
    input  logic [  8*Cols-1:0] aux_data_i,
    input  logic [    Cols-1:0] aux_mask_i,
    input  logic                mover_we_i,
    output logic                mover_ready_o,
    input  logic [SeatActW-1:0] mover_addr_i,
    input  logic [  8*Cols-1:0] mover_data_i,
    input  logic                loader_we_i,
    output logic                loader_ready_o,
    input  logic [SeatActW-1:0] loader_addr_i,
    input  logic [  8*Cols-1:0] loader_data_i
);
  // What is written: h a slice (Lanes bytes), int8 outputs (4 * Lanes), the joint (Rows / 4), whole units.
  localparam int unsigned Joint = (Rows / 4 < Cols) ? Rows / 4 : Cols;
  localparam int unsigned LaneBytes = (Lanes < Joint) ? Lanes : Joint;
  localparam int unsigned UnitLanes = Cols / LaneBytes;
  localparam int unsigned Banks = 6;
  localparam int unsigned MostAddrW = SeatW + ActMostW;

  typedef struct packed {
    logic [2:0] bank;  // region, side
    logic [MostAddrW-1:0] word;
  } place_t;

  function automatic place_t place(input logic [ActRegionW+1:0] address);
    logic [ActRegionW-1:0] low;
    logic [1:0] region;
    low = address[ActRegionW-1:0];
    region = address[ActRegionW+:2];
    unique case (region)
      ActScratch:
      return '{bank: {region, low[ScratchW]}, word: MostAddrW'({low[ScratchW+1+:SeatW], low[ScratchW-1:0]})};
      ActEnc: return '{bank: {region, low[EncAW]}, word: MostAddrW'({low[EncAW+1+:SeatW], low[EncAW-1:0]})};
      default: return '{bank: {region, low[PredAW]}, word: MostAddrW'({low[PredAW+1+:SeatW], low[PredAW-1:0]})};
    endcase
  endfunction

  place_t array, mover, write;
  logic [SeatActW-1:0] waddr;
  logic [8*Cols-1:0] wdata;
  logic [Cols-1:0] mask;
  logic [UnitLanes-1:0] we;

  assign array = place(array_addr_i[ActRegionW+1:0]);
  assign mover = place(mover_raddr_i[ActRegionW+1:0]);
  assign mover_re_ready_o = !array_en_i || array.bank != mover.bank;
  assign aux_ready_o = !finish_we_i;
  assign mover_ready_o = !finish_we_i && !aux_we_i;
  assign loader_ready_o = !finish_we_i && !aux_we_i && !mover_we_i;
  assign write = place(waddr[ActRegionW+1:0]);

  always_comb begin
    if (finish_we_i) {waddr, wdata, mask} = {finish_addr_i, finish_data_i, finish_mask_i};
    else if (aux_we_i) {waddr, wdata, mask} = {aux_addr_i, aux_data_i, aux_mask_i};
    else if (mover_we_i) {waddr, wdata, mask} = {mover_addr_i, mover_data_i, {Cols{1'b1}}};
    else {waddr, wdata, mask} = {loader_addr_i, loader_data_i, {Cols{loader_we_i}}};
    for (int unsigned lane = 0; lane < UnitLanes; lane++) we[lane] = mask[lane*LaneBytes];
  end

  logic [8*Cols-1:0] rdata[Banks];
  for (genvar bank = 0; bank < int'(Banks); bank++) begin : gen_bank
    localparam int unsigned UnitsW = (bank / 2 == int'(ActScratch)) ? ScratchW : (bank / 2 == int'(ActEnc)) ? EncAW : PredAW;
    localparam int unsigned Words = Seats << UnitsW;
    localparam int unsigned AddrW = $clog2(Words);

    logic array_hits, mover_hits;
    logic [UnitLanes-1:0] bank_we;
    assign array_hits = array_en_i && array.bank == 3'(bank);
    assign mover_hits = mover_re_i && mover.bank == 3'(bank);
    assign bank_we = (write.bank == 3'(bank)) ? we : '0;

    seat_ram #(
        .Lanes(UnitLanes),
        .LaneW(8 * LaneBytes),
        .Words(Words)
    ) u_ram (
        .clk_i,
        .we_i(bank_we),
        .waddr_i(write.word[AddrW-1:0]),
        .wdata_i(wdata),
        .re_i(array_hits || mover_hits),
        .raddr_i(array_hits ? array.word[AddrW-1:0] : mover.word[AddrW-1:0]),
        .rdata_o(rdata[bank])
    );
  end

  logic [2:0] array_bank_q[2], mover_bank_q[2];
  always_ff @(posedge clk_i) begin
    array_bank_q[0] <= array.bank;
    array_bank_q[1] <= array_bank_q[0];
    mover_bank_q[0] <= mover.bank;
    mover_bank_q[1] <= mover_bank_q[0];
  end
  assign array_data_o  = rdata[array_bank_q[1]];
  assign mover_rdata_o = rdata[mover_bank_q[1]];

  if (ActRegionW + 2 > SeatActW) begin : gen_check
    $error("%m: SeatActW is too small");
  end

  logic unused;
  assign unused = &{1'b0, array_addr_i, mover_raddr_i, waddr};  // bits above the region
endmodule
