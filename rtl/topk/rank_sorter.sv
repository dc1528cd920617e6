// SPDX-License-Identifier: Apache-2.0
// The largest logits seen since clear, in order: an insertion sorter, one candidate a clock. Candidates come in ascending order of class and must be
// greater to pass an equal one, so ties stay with the lowest class. Read by looking at the head and popping it.
//
// A candidate goes from place to place, a clock each: where it is greater than what is there it stays, and what was there goes on instead. So
// nothing has to reach all places at once but a pop, and that only when nothing is on its way: Places clocks after the last candidate.
module rank_sorter #(
    parameter int unsigned Places = 33
) (
    input logic clk_i,
    input logic rst_i,
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

  // Packed: nothing that synthesis would take for a memory.
  place_t [Places-1:0] place_q;
  place_t [  Places:0] coming;  // to each place, and past the last one
  logic   [  Places:0] moved;  // it has made way already: whatever it meets is behind it
  logic   [Places-1:0] stays;

  assign coming[0] = '{valid: valid_i, index: class_i, logit: logit_i};
  assign moved[0]  = 1'b0;
  assign class_o   = place_q[0].index;
  assign logit_o   = place_q[0].logit;

  always_comb begin
    for (int p = 0; p < int'(Places); p++) begin
      stays[p] = moved[p] || !place_q[p].valid || coming[p].logit > place_q[p].logit;
    end
  end

  for (genvar p = 0; p < int'(Places); p++) begin : gen_place
    place_t next, coming_q;
    logic moved_q;
    if (p + 1 < int'(Places)) begin : gen_next
      assign next = place_q[p+1];
    end else begin : gen_last
      assign next = '0;
    end

    always_ff @(posedge clk_i) begin
      if (coming[p].valid ? stays[p] : pop_i) place_q[p] <= coming[p].valid ? coming[p] : next;
      if (clear_i) place_q[p].valid <= 1'b0;

      coming_q <= stays[p] ? place_q[p] : coming[p];
      if (!coming[p].valid || rst_i) coming_q.valid <= 1'b0;
      moved_q <= moved[p] || stays[p];
    end
    assign coming[p+1] = coming_q;
    assign moved[p+1]  = moved_q;
  end

  logic unused;
  assign unused = &{1'b0, coming[Places], moved[Places]};

`ifdef FORMAL
  always_ff @(posedge clk_i) begin
    for (int p = 0; p < int'(Places); p++) assert (rst_i || !(pop_i && coming[p].valid));
  end
`endif  // FORMAL
endmodule
