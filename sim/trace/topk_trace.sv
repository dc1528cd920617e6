// SPDX-License-Identifier: Apache-2.0
// Reports joint evaluations and their log-sum-exps, for traces of a simulation. Bound to topk_unit.
module topk_trace (
    input logic clk_i,

    input logic        max_valid_i,    // the logits of an evaluation are complete
    input logic [15:0] temperature_i,
    input logic [ 3:0] logit_bits_i,
    input logic        taken_i,        // a scan of the last evaluation
    input logic        done_i,
    input logic [31:0] lse_i,
    input logic        load_valid_i,
    input logic [15:0] load_addr_i,
    input logic [31:0] load_data_i
);
  import "DPI-C" function void gharial_trace_best_known(
    input int temperature,
    input int logit_bits
  );
  import "DPI-C" function void gharial_trace_scan_taken();
  import "DPI-C" function void gharial_trace_scan_done(input int lse);
  import "DPI-C" function void gharial_trace_table_word(
    input int address,
    input int word
  );

  always_ff @(posedge clk_i) begin
    if (taken_i) gharial_trace_scan_taken();
    if (done_i) gharial_trace_scan_done(lse_i);
    if (max_valid_i) gharial_trace_best_known(32'(temperature_i), 32'(logit_bits_i));
    if (load_valid_i) gharial_trace_table_word(32'(load_addr_i), load_data_i);
  end
endmodule
