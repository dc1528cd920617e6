// SPDX-License-Identifier: Apache-2.0
// Weights on chip, read a tile at a time. It is spread over most of a device's block RAM, so each group of its banks has registers of its own for
// what comes to it. A bank holds one word of the loader a tile, so nothing is gathered before it is written.
module weight_memory #(
    parameter int unsigned Width = 2048,  // bits of a tile, a multiple of 32 * Groups
    parameter int unsigned Words = 1024,
    parameter int unsigned Groups = 8,
    parameter int unsigned AddrW = (Words > 1) ? $clog2(Words) : 1  // derived
) (
    input logic clk_i,

    input logic        load_valid_i,
    input logic [26:0] load_addr_i,   // 32-bit word of the space
    input logic [31:0] load_data_i,

    input  logic             re_i,
    input  logic [AddrW-1:0] raddr_i,
    output logic [Width-1:0] rdata_o   // three clocks after re_i; stays until the next read
);
  localparam int unsigned GroupW = Width / Groups;

  if (Width % (32 * Groups) != 0) begin : gen_check
    $error("%m: Width must be a multiple of 32 * Groups");
  end

  localparam int unsigned Parts = Width / 32;
  localparam int unsigned PartW = (Parts > 1) ? $clog2(Parts) : 1;

  logic we;
  logic [AddrW-1:0] waddr;
  logic [PartW-1:0] wpart;
  logic [31:0] wdata;

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

  for (genvar group = 0; group < int'(Groups); group++) begin : gen_group
    (* keep *) logic we_q, re_q;
    (* keep *) logic [AddrW-1:0] waddr_q, raddr_q;
    (* keep *) logic [PartW-1:0] wpart_q;
    (* keep *) logic [31:0] wdata_q;
    always_ff @(posedge clk_i) begin
      we_q <= we;
      waddr_q <= waddr;
      wpart_q <= wpart;
      wdata_q <= wdata;
      re_q <= re_i;
      raddr_q <= raddr_i;
    end

    word_banks #(
        .Banks(GroupW / 32),
        .First(group * GroupW / 32),
        .Words(Words),
        .PartW(PartW)
    ) u_banks (
        .clk_i,
        .we_i(we_q),
        .waddr_i(waddr_q),
        .wpart_i(wpart_q),
        .wdata_i(wdata_q),
        .re_i(re_q),
        .raddr_i(raddr_q),
        .rdata_o(rdata_o[GroupW*group+:GroupW])
    );
  end
endmodule
