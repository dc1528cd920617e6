// SPDX-License-Identifier: Apache-2.0
// Queue of a few words in distributed memory. The oldest word shows at the output in the clock after it was pushed.

module small_fifo #(
    parameter int unsigned Width = 1,
    parameter int unsigned Depth = 16  // a power of two
) (
    input logic clk_i,
    input logic rst_i,
    input logic push_valid_i,
    output logic push_ready_o,
    input logic [Width-1:0] push_data_i,
    output logic pop_valid_o,
    input logic pop_ready_i,
    output logic [Width-1:0] pop_data_o
);

  localparam int unsigned PlaceW = $clog2(Depth);

  if (Depth != 1 << PlaceW || Depth < 2) begin : g_depth
    $error("%m: Depth is not a power of two");
  end

  (* ram_style = "distributed" *) logic [Width-1:0] memory[Depth];
  logic [PlaceW:0] write_q, read_q;  // the extra bit tells full from empty
  logic push, pop;

  assign push = push_valid_i && push_ready_o;
  assign pop = pop_valid_o && pop_ready_i;
  assign push_ready_o = write_q != {~read_q[PlaceW], read_q[PlaceW-1:0]};
  assign pop_valid_o = write_q != read_q;
  assign pop_data_o = memory[read_q[PlaceW-1:0]];

  always_ff @(posedge clk_i) begin
    if (push) memory[write_q[PlaceW-1:0]] <= push_data_i;
    if (rst_i) begin
      write_q <= '0;
      read_q  <= '0;
    end else begin
      if (push) write_q <= write_q + 1'b1;
      if (pop) read_q <= read_q + 1'b1;
    end
  end

endmodule
