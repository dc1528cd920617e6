// SPDX-License-Identifier: Apache-2.0
// The entries of commands on their way: written word by word, read entry by entry, for one reader at a time.
module entry_ring
  import host_pkg::*;
#(
    parameter int unsigned Entries = 256,  // a power of two
    parameter int unsigned Readers = 4
) (
    input logic clk_i,
    input logic rst_i,

    input logic        we_i,
    input logic [15:0] windex_i,
    input logic [ 1:0] word_i,    // in ascending order; the entry is there after the last
    input logic [31:0] wdata_i,

    // The first reader comes first. Indices are taken modulo Entries.
    input  logic                valid_i[Readers],
    output logic                ready_o[Readers],
    input  logic         [15:0] index_i[Readers],
    output logic                got_o  [Readers],  // one clock
    output entry_words_t        entry_o            // with it
);
  localparam int unsigned AddrW = $clog2(Entries);

  if (Entries != 1 << AddrW) begin : gen_check
    $error("%m: Entries must be a power of two");
  end

  logic [2:0][31:0] before_q;
  logic any, way_q[2][Readers], busy_q;
  logic [15:0] index;
  always_comb begin
    any   = 1'b0;
    index = '0;
    for (int r = 0; r < int'(Readers); r++) begin
      ready_o[r] = !busy_q && valid_i[r] && !any;
      if (ready_o[r]) begin
        any   = 1'b1;
        index = index_i[r];
      end
    end
  end

  ram_1r1w #(
      .Width(128),
      .Words(Entries)
  ) u_ram (
      .clk_i,
      .we_i(we_i && word_i == 2'd3),
      .waddr_i(windex_i[AddrW-1:0]),
      .wdata_i({wdata_i, before_q}),
      .re_i(any),
      .raddr_i(index[AddrW-1:0]),
      .rdata_o(entry_o)
  );

  always_ff @(posedge clk_i) begin
    if (we_i) before_q <= {wdata_i, before_q[2:1]};
    busy_q <= any;
    for (int r = 0; r < int'(Readers); r++) begin
      way_q[0][r] <= ready_o[r] && !rst_i;
      way_q[1][r] <= way_q[0][r] && !rst_i;
    end
  end

  for (genvar r = 0; r < Readers; r++) begin : gen_got
    assign got_o[r] = way_q[1][r];
  end

  logic unused;
  assign unused = &{1'b0, windex_i, index};  // modulo Entries
endmodule
