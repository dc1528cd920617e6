// SPDX-License-Identifier: Apache-2.0
// Queue of a few words in look-up tables. A word shows at the output from the clock after it was pushed.
module small_fifo #(
    parameter int unsigned Width = 1,
    parameter int unsigned Depth = 16  // a power of two
) (
    input logic clk_i,
    input logic rst_i,

    input  logic             push_valid_i,
    output logic             push_ready_o,
    input  logic [Width-1:0] push_data_i,

    output logic             pop_valid_o,
    input  logic             pop_ready_i,
    output logic [Width-1:0] pop_data_o
);
  localparam int unsigned AddrW = $clog2(Depth);

  if (Depth < 2 || Depth != 1 << AddrW) begin : gen_check
    $error("%m: Depth must be a power of two, at least 2");
  end

  // Whether there is a word, and room for one, are registers: comparing the places would be the start of many a long path.
  logic [AddrW:0] write_q, read_q;  // the bit on top tells full from empty
  logic push, pop, one_word, one_place;

  assign push = push_valid_i && push_ready_o;
  assign pop = pop_valid_o && pop_ready_i;
  assign one_word = write_q == read_q + (AddrW + 1)'(1);
  assign one_place = write_q + (AddrW + 1)'(1) == {~read_q[AddrW], read_q[AddrW-1:0]};

  lut_ram #(
      .Width(Width),
      .Words(Depth)
  ) u_ram (
      .clk_i,
      .we_i(push),
      .waddr_i(write_q[AddrW-1:0]),
      .wdata_i(push_data_i),
      .raddr_i(read_q[AddrW-1:0]),
      .rdata_o(pop_data_o)
  );

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      write_q <= '0;
      read_q <= '0;
      pop_valid_o <= 1'b0;
      push_ready_o <= 1'b1;
    end else begin
      pop_valid_o <= push || (pop_valid_o && !(pop && one_word));
      push_ready_o <= pop || (push_ready_o && !(push && one_place));
      write_q <= write_q + (AddrW + 1)'(push);
      read_q <= read_q + (AddrW + 1)'(pop);
    end
  end
endmodule
