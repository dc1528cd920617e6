// SPDX-License-Identifier: Apache-2.0
// Small memory in look-up tables: one write port, and one read port whose data follow the address in the same clock. A word being
// written is read as it was. On ECP5 sixteen words of four bits take one cell.
module lut_ram #(
    parameter int unsigned Width = 32,  // bits of a word
    parameter int unsigned Words = 16,
    parameter int unsigned AddrW = (Words > 1) ? $clog2(Words) : 1  // derived
) (
    input  logic             clk_i,
    input  logic             we_i,
    input  logic [AddrW-1:0] waddr_i,
    input  logic [Width-1:0] wdata_i,
    input  logic [AddrW-1:0] raddr_i,
    output logic [Width-1:0] rdata_o   // same clock
);
  (* ram_style = "distributed" *)
  logic [Width-1:0] mem[Words];

  always_ff @(posedge clk_i) begin
    if (we_i) mem[waddr_i] <= wdata_i;
  end
  assign rdata_o = mem[raddr_i];
endmodule
