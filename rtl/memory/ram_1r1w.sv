// SPDX-License-Identifier: Apache-2.0
// Memory with one write port and one read port, both on one clock. Data come two clocks after the address (block RAM and
// its output register, nothing between) and stay until the next read. No reader relies on either the old or the new data of
// a word that is being written (no_rw_check): ECP5 would need registers and multiplexers to promise one.
module ram_1r1w #(
    parameter int unsigned Width = 36,  // bits of a word
    parameter int unsigned Words = 512,
    parameter string Style = "block",  // "ultra": UltraRAM, which ECP5 does not have
    parameter int unsigned AddrW = (Words > 1) ? $clog2(Words) : 1  // derived
) (
    input  logic             clk_i,
    input  logic             we_i,
    input  logic [AddrW-1:0] waddr_i,
    input  logic [Width-1:0] wdata_i,
    input  logic             re_i,
    input  logic [AddrW-1:0] raddr_i,
    output logic [Width-1:0] rdata_o   // two clocks after re_i
);
  if (Style != "block" && Style != "ultra") begin : gen_check
    $error("%m: Style must be block or ultra");
  end

  (* ram_style = Style, no_rw_check *)
  logic [Width-1:0] mem[Words];
  logic [Width-1:0] read_q;

  always_ff @(posedge clk_i) begin
    if (we_i) mem[waddr_i] <= wdata_i;
    if (re_i) read_q <= mem[raddr_i];
    rdata_o <= read_q;  // the same again until the next read: an enable would have to reach every bit of the weights
  end
endmodule
