// SPDX-License-Identifier: Apache-2.0
// Writes the result of a rank job (docs/isa.md, section 5): of DECODE log-sum-exp, named logits, then the best k or all logits; of a greedy token
// the token with its logit, and the log-sum-exp.
module result_writer
  import seat_pkg::*;
#(
    parameter int unsigned RankLanes = 4
) (
    input logic clk_i,
    input logic rst_i,

    input  logic             start_i,    // the scan is done; its results stay until done_o
    input  rank_job_t        job_i,
    input  logic      [15:0] classes_i,
    output logic             done_o,     // one clock

    input  logic signed [31:0] lse_i,
    input  logic        [15:0] max_class_i,
    input  logic signed [15:0] max_logit_i,
    input  logic signed [15:0] named_i     [4],
    output logic               rank_pop_o,
    input  logic        [15:0] rank_class_i,
    input  logic signed [15:0] rank_logit_i,

    // Mode all: chunks of logits, four clocks after re_o and then until the next.
    output logic               re_o,
    output logic        [15:0] rchunk_o,
    input  logic               valid_i,
    input  logic signed [15:0] logit_i [RankLanes],

    output logic        valid_o,
    input  logic        ready_i,
    output logic [63:0] address_o,
    output logic [31:0] data_o
);
  localparam logic [1:0] ModeAll = 2'd2;
  localparam int unsigned Pairs = RankLanes / 2;  // a chunk
  localparam int unsigned PairW = (Pairs > 1) ? $clog2(Pairs) : 1;

  typedef enum logic [3:0] {
    Idle,
    Token,
    Lse,    // of a token
    Head,   // log-sum-exp of DECODE
    Named,
    Count,
    Rank,
    Chunk,  // mode all: wait for logits
    Pair    // write them
  } state_e;

  state_e state_q;
  logic all, taken;
  logic named_second_q, ready_q, pair_ends;
  logic [ 7:0] rank_q;
  logic [63:0] address_q;
  logic [15:0] chunk_q, pair_q, last_pair_q;
  logic [Pairs-1:0][31:0] pairs_q;

  assign all = job_i.mode == ModeAll;
  assign taken = valid_o && ready_i;
  assign valid_o = state_q != Idle && state_q != Chunk;
  assign address_o = address_q;
  assign rank_pop_o = state_q == Rank && ready_i;
  assign pair_ends = pair_q[PairW-1:0] == PairW'(Pairs - 1);

  always_comb begin
    unique case (state_q)
      Token: data_o = {max_class_i, max_logit_i};
      Named: data_o = named_second_q ? {named_i[3], named_i[2]} : {named_i[1], named_i[0]};
      Count: data_o = {16'd0, all ? classes_i : 16'(job_i.k)};
      Rank: data_o = {rank_class_i, rank_logit_i};
      Pair: data_o = pairs_q[0];
      default: data_o = lse_i;
    endcase
  end

  // The next chunk is read while this one is written.
  logic load;
  assign load = state_q == Chunk && ready_q;
  assign rchunk_o = chunk_q;

  always_ff @(posedge clk_i) begin
    done_o <= 1'b0;
    re_o <= 1'b0;
    last_pair_q <= (classes_i - 16'd1) >> 1;
    if (taken) address_q <= address_q + 64'd4;
    if (valid_i) ready_q <= 1'b1;

    unique case (state_q)
      Idle: begin
        address_q <= job_i.address;
        named_second_q <= 1'b0;
        rank_q <= '0;
        chunk_q <= '0;
        pair_q <= '0;
        ready_q <= 1'b0;
        if (start_i) begin
          state_q <= job_i.greedy ? Token : Head;
          re_o <= !job_i.greedy && all;
        end
      end
      Token: if (ready_i) state_q <= Lse;
      Lse: begin
        if (ready_i) begin
          done_o  <= 1'b1;
          state_q <= Idle;
        end
      end
      Head:  if (ready_i) state_q <= Named;
      Named: begin
        if (ready_i) begin
          named_second_q <= 1'b1;
          if (named_second_q) state_q <= Count;
        end
      end
      Count: if (ready_i) state_q <= all ? Chunk : Rank;
      Rank: begin
        if (ready_i) begin
          rank_q <= rank_q + 8'd1;
          if (rank_q + 8'd1 == job_i.k) begin
            done_o  <= 1'b1;
            state_q <= Idle;
          end
        end
      end
      Chunk: begin
        if (load) begin
          ready_q <= 1'b0;
          re_o <= 1'b1;
          chunk_q <= chunk_q + 16'd1;
          state_q <= Pair;
        end
      end
      default: begin
        if (ready_i) begin
          pair_q <= pair_q + 16'd1;
          if (pair_q == last_pair_q) begin
            done_o  <= 1'b1;
            state_q <= Idle;
          end else if (pair_ends) begin
            state_q <= Chunk;
          end
        end
      end
    endcase

    for (int p = 0; p < int'(Pairs); p++) begin
      if (load) pairs_q[p] <= {logit_i[2*p+1], logit_i[2*p]};
      else if (state_q == Pair && ready_i) pairs_q[p] <= pairs_q[(p+1)%int'(Pairs)];
    end
    if (rst_i) state_q <= Idle;
  end

  logic unused;
  assign unused = &{1'b0, job_i};  // the scan's fields
endmodule
