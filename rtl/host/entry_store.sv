// SPDX-License-Identifier: Apache-2.0
// The entries of the command in work, written as words, read entry by entry.
module entry_store
  import host_pkg::*;
#(
    parameter int unsigned MaxEntries = gharial_config_pkg::MaxEntries,
    parameter int unsigned AddrW = $clog2(4 * MaxEntries)  // derived
) (
    input logic clk_i,
    input logic rst_i,

    input logic             we_i,
    input logic [AddrW-1:0] waddr_i,
    input logic [     31:0] wdata_i,

    input  logic                get_i,    // one clock
    input  logic         [15:0] index_i,  // stays until got
    output logic                got_o,    // one clock
    output entry_words_t        entry_o   // until the next get
);
  logic [2:0] asked_q, arrived_q;
  logic [1:0] way_q;
  logic reading_q;
  logic [31:0] word;

  ram_1r1w #(
      .Width(32),
      .Words(4 * MaxEntries)
  ) u_ram (
      .clk_i,
      .we_i,
      .waddr_i,
      .wdata_i,
      .re_i(reading_q),
      .raddr_i(AddrW'({index_i, asked_q[1:0]})),
      .rdata_o(word)
  );

  always_ff @(posedge clk_i) begin
    got_o <= 1'b0;
    way_q <= {way_q[0], reading_q};
    if (reading_q) begin
      asked_q   <= asked_q + 3'd1;
      reading_q <= asked_q != 3'd3;
    end
    if (way_q[1]) begin
      entry_o[arrived_q[1:0]] <= word;
      arrived_q <= arrived_q + 3'd1;
      got_o <= arrived_q == 3'd3;
    end
    if (get_i) begin
      asked_q   <= '0;
      arrived_q <= '0;
      reading_q <= 1'b1;
    end
    if (rst_i) begin
      reading_q <= 1'b0;
      way_q <= '0;
    end
  end
endmodule
