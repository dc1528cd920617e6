// SPDX-License-Identifier: Apache-2.0
// Some of the banks of a program space whose words have several words of the loader: bank b has part First + b of each.
module word_banks #(
    parameter int unsigned Banks = 4,
    parameter int unsigned First = 0,
    parameter int unsigned Words = 512,
    parameter int unsigned PartW = 2,  // bits of a part's number
    parameter int unsigned AddrW = (Words > 1) ? $clog2(Words) : 1  // derived
) (
    input logic clk_i,

    input logic             we_i,
    input logic [AddrW-1:0] waddr_i,
    input logic [PartW-1:0] wpart_i,
    input logic [     31:0] wdata_i,

    input  logic                re_i,
    input  logic [   AddrW-1:0] raddr_i,
    output logic [32*Banks-1:0] rdata_o   // two clocks after re_i
);
  for (genvar bank = 0; bank < int'(Banks); bank++) begin : gen_bank
    ram_1r1w #(
        .Width(32),
        .Words(Words)
    ) u_ram (
        .clk_i,
        .we_i(we_i && wpart_i == PartW'(First + bank)),
        .waddr_i,
        .wdata_i,
        .re_i,
        .raddr_i,
        .rdata_o(rdata_o[32*bank+:32])
    );
  end
endmodule
