// SPDX-License-Identifier: Apache-2.0
// Scales or biases of a batch machine: written by the loader as a stream of 32-bit words, read a slice at a time. A loaded_memory in one piece, whose words are lanes: UltraRAM is
// twice as wide as they are.
module seat_program #(
    parameter int unsigned Width = 256,  // bits of a word: 32 times a power of two
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
  localparam int unsigned PartW = (Parts > 1) ? $clog2(Parts) : 1;

  if (Width != 32 << $clog2(Width / 32)) begin : gen_check
    $error("%m: Width must be 32 times a power of two");
  end

  logic we;
  logic [AddrW-1:0] waddr;
  logic [PartW-1:0] wpart;
  logic [31:0] wdata;
  logic [Parts-1:0] part_we;

  load_decoder #(
      .Parts(Parts),
      .Words(Words)
  ) u_decoder (
      .clk_i,
      .load_valid_i,
      .load_addr_i,
      .load_data_i,
      .we_o(we),
      .waddr_o(waddr),
      .wpart_o(wpart),
      .wdata_o(wdata)
  );

  always_comb for (int unsigned part = 0; part < Parts; part++) part_we[part] = we && wpart == PartW'(part);

  seat_ram #(
      .Lanes(Parts),
      .LaneW(32),
      .Words(Words)
  ) u_ram (
      .clk_i,
      .we_i(part_we),
      .waddr_i(waddr),
      .wdata_i({Parts{wdata}}),
      .re_i,
      .raddr_i,
      .rdata_o
  );
endmodule
