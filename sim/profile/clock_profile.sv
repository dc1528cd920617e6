// SPDX-License-Identifier: Apache-2.0
// Reports what each clock is counted as, for profiles of a simulation. Bound to counters.
module clock_profile (
    input logic clk_i,
    input logic rst_i,

    input logic enable_i,
    input logic latch_i,
    input logic [6:0] now_i  // bit n: counter n
);
  import "DPI-C" function int gharial_profile_on();
  import "DPI-C" function void gharial_profile_clock(
    input int now,
    input int enabled,
    input int latched,
    input int reset
  );

  always_ff @(posedge clk_i) begin
    if (gharial_profile_on() != 0) begin
      gharial_profile_clock(32'(now_i), 32'(enable_i), 32'(latch_i), 32'(rst_i));
    end
  end
endmodule
