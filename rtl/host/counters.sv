// SPDX-License-Identifier: Apache-2.0
// Where the clocks go: each enabled clock counts in one cause (docs/architecture.md). Read as latched.
module counters (
    input logic clk_i,
    input logic rst_i,  // and soft reset

    input logic enable_i,
    input logic latch_i,

    input logic active_i,
    input logic backpressure_i,
    input logic weights_i,
    input logic dependency_i,
    input logic loading_i,

    output logic [63:0] clock_o,     // free-running from reset: the watchdog's and the completions'
    output logic [63:0] latched_o[7] // cycles, active, weights, dependency, back-pressure, loading, idle
);
  logic [63:0] count_q[7];
  logic [6:0] now, now_q;  // a clock counts in the next

  always_comb begin
    now = '0;
    now[0] = 1'b1;
    if (active_i) now[1] = 1'b1;
    else if (weights_i) now[2] = 1'b1;
    else if (backpressure_i) now[4] = 1'b1;
    else if (dependency_i) now[3] = 1'b1;
    else if (loading_i) now[5] = 1'b1;
    else now[6] = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    now_q <= now;
    for (int i = 0; i < 7; i++) begin
      if (enable_i && now_q[i]) count_q[i] <= count_q[i] + 64'd1;
      if (latch_i) latched_o[i] <= count_q[i];
    end
    clock_o <= clock_o + 64'd1;
    if (rst_i) begin
      now_q <= 7'b1000001;  // idle
      for (int i = 0; i < 7; i++) begin
        count_q[i]   <= '0;
        latched_o[i] <= '0;
      end
      clock_o <= '0;
    end
  end
endmodule
