// SPDX-License-Identifier: Apache-2.0
// Memory of the batch machine with lanes that are written separately, as the byte enables of block RAM and UltraRAM do it; else as ram_1r1w. What is at least half as deep as an
// UltraRAM goes there.
module seat_ram #(
    parameter int unsigned Lanes = 8,
    parameter int unsigned LaneW = 8,
    parameter int unsigned Words = 512,
    parameter int unsigned AddrW = (Words > 1) ? $clog2(Words) : 1  // derived
) (
    input  logic                   clk_i,
    input  logic [      Lanes-1:0] we_i,
    input  logic [      AddrW-1:0] waddr_i,
    input  logic [Lanes*LaneW-1:0] wdata_i,
    input  logic                   re_i,
    input  logic [      AddrW-1:0] raddr_i,
    output logic [Lanes*LaneW-1:0] rdata_o   // two clocks after re_i
);
  (* ram_style = (Words >= seat_pkg::UltraWords) ? "ultra" : "block", no_rw_check *)
  logic [Lanes*LaneW-1:0] mem[Words];
  logic [Lanes*LaneW-1:0] read_q;

  always_ff @(posedge clk_i) begin
    if (we_i != '0) begin  // seldom: nothing to look at otherwise
      for (int unsigned lane = 0; lane < Lanes; lane++) begin
        if (we_i[lane]) mem[waddr_i][LaneW*lane+:LaneW] <= wdata_i[LaneW*lane+:LaneW];
      end
    end
    if (re_i) read_q <= mem[raddr_i];
    rdata_o <= read_q;
  end
endmodule
