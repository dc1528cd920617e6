// SPDX-License-Identifier: Apache-2.0
// The largest logits seen since clear, in order: an insertion sorter, one candidate a clock. Candidates come in ascending order of class and must be
// greater to pass an equal one, so ties stay with the lowest class. Read by looking at the head and popping it.
module rank_sorter #(
    parameter int unsigned Places = 33
) (
    input logic clk_i,
    input logic clear_i,

    input logic               valid_i,
    input logic        [15:0] class_i,
    input logic signed [15:0] logit_i,

    input  logic               pop_i,
    output logic        [15:0] class_o,
    output logic signed [15:0] logit_o
);
  typedef struct packed {
    logic valid;
    logic [15:0] index;
    logic signed [15:0] logit;
  } place_t;

  place_t [Places-1:0] place_q;  // packed: nothing that synthesis would take for a memory
  place_t candidate;
  logic [Places-1:0] passed;  // the candidate passes what is in this place

  assign candidate = '{valid: 1'b1, index: class_i, logit: logit_i};
  assign class_o   = place_q[0].index;
  assign logit_o   = place_q[0].logit;

  always_comb begin
    for (int p = 0; p < int'(Places); p++) begin
      passed[p] = !place_q[p].valid || logit_i > place_q[p].logit;
    end
  end

  always_ff @(posedge clk_i) begin
    for (int p = 0; p < int'(Places); p++) begin
      if (clear_i) begin
        place_q[p].valid <= 1'b0;
      end else if (valid_i) begin
        if (passed[p]) place_q[p] <= (p > 0 && passed[(p>0)?p-1 : 0]) ? place_q[(p>0)?p-1 : 0] : candidate;
      end else if (pop_i) begin
        if (p + 1 < int'(Places)) place_q[p] <= place_q[p+1];
        else place_q[p].valid <= 1'b0;
      end
    end
  end
endmodule
