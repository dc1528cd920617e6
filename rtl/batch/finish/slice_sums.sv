// SPDX-License-Identifier: Apache-2.0
// What a slice's sums start at, and where they are kept: the memories of biases and of sums.
//
// Timing, with a slice's control in clock 4: bias or sum is read in 5, start_o is there in 7, and new sums of clock 8 are written in that clock. So
// a sum may be read again by the fourth slice after at the earliest.
module slice_sums
  import gharial_pkg::*;
  import slice_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    input logic          load_valid_i,
    input space_e        load_space_i,
    input logic   [26:0] load_addr_i,   // 32-bit word of the space
    input logic   [31:0] load_data_i,

    // Clock 4.
    input logic                 valid_i,
    input logic                 fresh_i,     // start at the bias
    input logic                 keep_i,
    input logic [ SumAddrW-1:0] sum_addr_i,
    input logic [BiasAddrW-1:0] bias_addr_i,

    output logic [SliceRows-1:0][31:0] start_o,  // clock 7
    input  logic [SliceRows-1:0][31:0] sum_i     // clock 8
);
  localparam int unsigned ReadAt = 5;
  localparam int unsigned StartAt = 7;
  localparam int unsigned WriteAt = 8;

  logic valid5_q;
  logic [WriteAt:ReadAt] keep_q;
  logic [StartAt:ReadAt] fresh_q;
  logic [SumAddrW-1:0] addr_q[ReadAt:WriteAt];
  logic [BiasAddrW-1:0] bias_addr5_q;
  logic [SliceRows-1:0][31:0] stored, bias;

  always_ff @(posedge clk_i) begin
    valid5_q <= valid_i && !rst_i;
    bias_addr5_q <= bias_addr_i;
    fresh_q <= {fresh_q[StartAt-1:ReadAt], fresh_i};
    keep_q <= rst_i ? '0 : {keep_q[WriteAt-1:ReadAt], valid_i && keep_i};
    addr_q[ReadAt] <= sum_addr_i;
    for (int unsigned n = ReadAt + 1; n <= WriteAt; n++) addr_q[n] <= addr_q[n-1];
  end

  seat_program #(
      .Width(32 * SliceRows),
      .Words(BiasWords)
  ) u_biases (
      .clk_i,
      .load_valid_i(load_valid_i && load_space_i == SpaceBiases),
      .load_addr_i,
      .load_data_i,
      .re_i(valid5_q && fresh_q[ReadAt]),
      .raddr_i(bias_addr5_q),
      .rdata_o(bias)
  );

  ram_1r1w #(
      .Width(32 * SliceRows),
      .Words(SumWords),
      .Style((SumWords >= seat_pkg::UltraWords) ? "ultra" : "block")
  ) u_sums (
      .clk_i,
      .we_i(keep_q[WriteAt]),
      .waddr_i(addr_q[WriteAt]),
      .wdata_i(sum_i),
      .re_i(valid5_q && !fresh_q[ReadAt]),
      .raddr_i(addr_q[ReadAt]),
      .rdata_o(stored)
  );

  assign start_o = fresh_q[StartAt] ? bias : stored;
endmodule
