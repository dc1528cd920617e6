// SPDX-License-Identifier: Apache-2.0
// The logits of the last two joints, in two banks, and the largest of the one that is coming in.
//
// Quads come in ascending order; classes from classes_i on are dropped. Among equal logits the lowest class wins: a later one must be greater to win.
module logit_store #(
    parameter int unsigned MaxClasses = 512,  // a multiple of 4
    parameter int unsigned Quads = MaxClasses / 4,  // derived
    parameter int unsigned AddrW = $clog2(2 * Quads)  // derived
) (
    input logic clk_i,
    input logic rst_i,

    // Logits of one joint, four a clock.
    input logic               logit_valid_i,
    input logic        [15:0] logit_quad_i,
    input logic signed [15:0] logit_data_i [4],
    input logic               logit_last_i,
    input logic        [15:0] classes_i,

    // The largest, once the last quad has come.
    output logic               max_valid_o,
    output logic        [15:0] max_class_o,
    output logic signed [15:0] max_logit_o,
    output logic               max_bank_o,

    // Reading a bank; data three clocks after re_i.
    input  logic               re_i,
    input  logic               rbank_i,
    input  logic        [15:0] rclass_i,
    output logic signed [15:0] rlogit_o
);
  if (MaxClasses % 4 != 0) begin : gen_check
    $error("%m: MaxClasses must be a multiple of 4");
  end

  // Memory, a quad a word.
  logic bank_q;
  logic [63:0] word;
  logic [1:0] lane_q[2];

  logic [AddrW-1:0] write_address, read_address;
  assign write_address = AddrW'(logit_quad_i) + (bank_q ? AddrW'(Quads) : '0);
  assign read_address  = AddrW'(rclass_i[15:2]) + (rbank_i ? AddrW'(Quads) : '0);

  ram_1r1w #(
      .Width(64),
      .Words(2 * Quads)
  ) u_ram (
      .clk_i,
      .we_i(logit_valid_i && 32'(logit_quad_i) < Quads),
      .waddr_i(write_address),
      .wdata_i({logit_data_i[3], logit_data_i[2], logit_data_i[1], logit_data_i[0]}),
      .re_i,
      .raddr_i(read_address),
      .rdata_o(word)
  );

  always_ff @(posedge clk_i) begin
    lane_q[0] <= rclass_i[1:0];
    lane_q[1] <= lane_q[0];
    rlogit_o  <= word[16*lane_q[1]+:16];
  end

  // Largest of a quad in two steps, then against the running one.
  typedef struct packed {
    logic valid;
    logic [15:0] index;
    logic signed [15:0] logit;
  } best_t;

  function automatic best_t better(input best_t low, input best_t high);
    better = (high.valid && (!low.valid || high.logit > low.logit)) ? high : low;
  endfunction

  best_t pair_q[2], quad_q, running_q;
  logic first_q, pair_valid_q, pair_first_q, pair_last_q, quad_valid_q, quad_first_q, quad_last_q;

  best_t lane[4];
  always_comb begin
    for (int i = 0; i < 4; i++) begin
      lane[i].index = {logit_quad_i[13:0], 2'(i)};
      lane[i].logit = logit_data_i[i];
      lane[i].valid = lane[i].index < classes_i;
    end
  end

  always_ff @(posedge clk_i) begin
    pair_q[0] <= better(lane[0], lane[1]);
    pair_q[1] <= better(lane[2], lane[3]);
    quad_q <= better(pair_q[0], pair_q[1]);
    if (quad_valid_q) running_q <= quad_first_q ? quad_q : better(running_q, quad_q);
    {pair_first_q, pair_last_q} <= {first_q, logit_last_i};
    {quad_first_q, quad_last_q} <= {pair_first_q, pair_last_q};
    max_bank_o <= (quad_valid_q && quad_last_q) ? ~bank_q : max_bank_o;
    if (rst_i) begin
      pair_valid_q <= 1'b0;
      quad_valid_q <= 1'b0;
      max_valid_o <= 1'b0;
      first_q <= 1'b1;
      bank_q <= 1'b0;
    end else begin
      pair_valid_q <= logit_valid_i;
      quad_valid_q <= pair_valid_q;
      max_valid_o  <= quad_valid_q && quad_last_q;
      if (logit_valid_i) begin
        first_q <= logit_last_i;
        if (logit_last_i) bank_q <= ~bank_q;
      end
    end
  end

  assign max_class_o = running_q.index;
  assign max_logit_o = running_q.logit;
endmodule
