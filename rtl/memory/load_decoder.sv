// SPDX-License-Identifier: Apache-2.0
// Where a word of the loader belongs in a program space: which part of which wide word; a clock later. Words beyond the space are dropped.
module load_decoder #(
    parameter int unsigned Parts = 4,  // words of the loader in a word of the space, a power of two
    parameter int unsigned Words = 512,
    parameter int unsigned PartW = (Parts > 1) ? $clog2(Parts) : 1,  // derived
    parameter int unsigned AddrW = (Words > 1) ? $clog2(Words) : 1  // derived
) (
    input logic clk_i,

    input logic        load_valid_i,
    input logic [26:0] load_addr_i,   // 32-bit word of the space
    input logic [31:0] load_data_i,

    output logic             we_o,
    output logic [AddrW-1:0] waddr_o,
    output logic [PartW-1:0] wpart_o,
    output logic [     31:0] wdata_o
);
  logic [26:0] word;
  assign word = load_addr_i / 27'(Parts);

  always_ff @(posedge clk_i) begin
    we_o <= load_valid_i && 32'(word) < Words;
    waddr_o <= word[AddrW-1:0];
    wpart_o <= PartW'(load_addr_i % 27'(Parts));
    wdata_o <= load_data_i;
  end
endmodule
