// SPDX-License-Identifier: Apache-2.0
// Reports finished jobs in the order in which they came, though their ways through the vector unit differ in length.
//
// Jobs of one way finish in order; so it is enough to count the finished ones of each way, and to know each job's way.
module retire_order
  import gharial_pkg::*;
  import vector_pkg::*;
#(
    parameter int unsigned Depth = 16  // jobs within the vector unit, at most
) (
    input logic clk_i,
    input logic rst_i,

    input logic    begun_valid_i,
    input way_e    begun_way_i,
    input thread_e begun_thread_i,

    input logic [Ways-1:0] done_i,

    output logic    retire_valid_o,  // in the clock of done_i, if all before have been reported
    output thread_e retire_thread_o
);
  localparam int unsigned CountW = $clog2(Depth + 1);

  logic job_valid;
  logic [$bits(way_e)-1:0] way;
  logic head_thread;
  logic [Ways-1:0] waiting, retire;
  logic room;

  small_fifo #(
      .Width($bits(way_e) + 1),
      .Depth(Depth)
  ) u_jobs (
      .clk_i,
      .rst_i,
      .push_valid_i(begun_valid_i),
      .push_ready_o(room),
      .push_data_i ({begun_way_i, begun_thread_i}),
      .pop_valid_o (job_valid),
      .pop_ready_i (retire_valid_o),
      .pop_data_o  ({way, head_thread})
  );

  for (genvar w = 0; w < Ways; w++) begin : gen_way
    logic [CountW-1:0] count_q;
    assign waiting[w] = done_i[w] || count_q != '0;
    assign retire[w]  = job_valid && 32'(way) == w && waiting[w];
    always_ff @(posedge clk_i) begin
      if (rst_i) count_q <= '0;
      else count_q <= count_q + CountW'(done_i[w]) - CountW'(retire[w]);
    end
  end

  assign retire_valid_o  = retire != '0;
  assign retire_thread_o = thread_e'(head_thread);

`ifdef FORMAL
  always_ff @(posedge clk_i) begin
    if (!rst_i && begun_valid_i) a_room : assert (room);
  end
`else
  logic unused;
  assign unused = room;
`endif  // FORMAL
endmodule
