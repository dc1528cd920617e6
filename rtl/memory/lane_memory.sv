// SPDX-License-Identifier: Apache-2.0
// Memory whose words have separately written lanes: a bank a lane, one address for all.
module lane_memory #(
    parameter int unsigned Lanes = 8,
    parameter int unsigned LaneW = 16,
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
  for (genvar lane = 0; lane < int'(Lanes); lane++) begin : gen_lane
    ram_1r1w #(
        .Width(LaneW),
        .Words(Words)
    ) u_ram (
        .clk_i,
        .we_i(we_i[lane]),
        .waddr_i,
        .wdata_i(wdata_i[LaneW*lane+:LaneW]),
        .re_i,
        .raddr_i,
        .rdata_o(rdata_o[LaneW*lane+:LaneW])
    );
  end
endmodule
