// SPDX-License-Identifier: Apache-2.0
// A program space on chip: written by the loader as a stream of 32-bit words in ascending order, read as wide words. A wide word is written when its
// last part arrives.
module loaded_memory #(
    parameter int unsigned Width = 64,  // bits of a word, a multiple of 32
    parameter int unsigned Words = 512,
    parameter int unsigned AddrW = (Words > 1) ? $clog2(Words) : 1  // derived
) (
    input logic clk_i,

    input logic        load_valid_i,
    input logic [26:0] load_addr_i,   // 32-bit word of the space
    input logic [31:0] load_data_i,

    input  logic             re_i,
    input  logic [AddrW-1:0] raddr_i,
    output logic [Width-1:0] rdata_o   // two clocks after re_i
);
  localparam int unsigned Parts = Width / 32;

  logic complete;
  logic [26:0] word;
  logic [Width-1:0] wide;

  if (Width % 32 != 0) begin : gen_check
    $error("%m: Width must be a multiple of 32");
  end
  if (Parts == 1) begin : gen_narrow
    assign complete = load_valid_i;
    assign word = load_addr_i;
    assign wide = load_data_i;
  end else begin : gen_wide
    logic [Width-33:0] parts_q;
    always_ff @(posedge clk_i) begin
      if (load_valid_i) parts_q <= wide[Width-1:32];
    end
    assign wide = {load_data_i, parts_q};
    assign complete = load_valid_i && load_addr_i % 27'(Parts) == 27'(Parts - 1);
    assign word = load_addr_i / 27'(Parts);
  end

  ram_1r1w #(
      .Width(Width),
      .Words(Words)
  ) u_ram (
      .clk_i,
      .we_i(complete && 32'(word) < Words),
      .waddr_i(word[AddrW-1:0]),
      .wdata_i(wide),
      .re_i,
      .raddr_i,
      .rdata_o
  );
endmodule
