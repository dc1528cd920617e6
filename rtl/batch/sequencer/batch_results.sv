// SPDX-License-Identifier: Apache-2.0
// Results of the decode thread: one rank job after another, what GREEDY counts, and the ends of batches in order.
//
// Works beside the thread: a joint's logits are free when its last job is done, and only then may the next joint write logits.
module batch_results
  import gharial_pkg::*;
  import seat_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    // Seats to be ranked, or the end of a batch: DECODE's seats are ranked, GREEDY's counted.
    input  logic                         rank_valid_i,
    output logic                         rank_ready_o,
    input  logic                         rank_ends_i,
    input  seats_t                       rank_seats_i,
    input  batch_t                       rank_batch_i,
    input  batch_done_t                  rank_done_i,
    input  logic        [Seats-1:0][7:0] rank_counts_i,  // GREEDY: stay
    output logic                         rank_idle_o,
    output logic                         logits_free_o,

    output logic      job_valid_o,
    input  logic      job_ready_i,
    output rank_job_t job_o,
    input  logic      job_done_i,

    // Words of the rank unit pass through.
    input  logic        word_valid_i,
    output logic        word_ready_o,
    input  logic [63:0] word_addr_i,
    input  logic [31:0] word_data_i,

    output logic             result_valid_o,
    input  logic             result_ready_i,
    output logic [     63:0] result_addr_o,
    output logic [     31:0] result_data_o,
    output logic [WorkW-1:0] result_work_o,

    output logic        done_valid_o,
    input  logic        done_ready_i,
    output batch_done_t done_o
);
  typedef enum logic [2:0] {
    Idle,
    Seat,
    Offer,
    Rank,
    Tokens,  // GREEDY's first two words of a result
    Joints,
    Done
  } state_e;

  state_e state_q;
  batch_t batch_q;
  batch_done_t done_q;
  seats_t left_q;  // seats from seat_q on
  logic [SeatW-1:0] seat_q;
  logic [63:0] address_q;  // of the seat's result
  logic ends_q, greedy, capped, next_seat;
  logic [7:0] count_q;

  assign greedy = batch_q.operation == CmdGreedy;
  assign rank_ready_o = state_q == Idle;
  assign rank_idle_o = state_q == Idle;
  assign logits_free_o = state_q == Idle || state_q == Done || (greedy && ends_q);
  assign job_valid_o = state_q == Offer;
  assign job_o = '{
          seat: seat_q,
          greedy: greedy,
          mode: batch_q.mode,
          k: batch_q.k,
          named: batch_q.named,
          named_class: batch_q.named_class,
          temperature: batch_q.temperature,
          address: address_q + (greedy ? 64'({count_q, 3'd0}) : 64'd0)
      };

  // GREEDY's counts are written when no job is left: the rank unit then has no words.
  assign capped = count_q == batch_q.k;
  assign word_ready_o = result_ready_i;
  assign result_work_o = batch_q.work;
  always_comb begin
    result_valid_o = word_valid_i;
    {result_addr_o, result_data_o} = {word_addr_i, word_data_i};
    if (state_q == Tokens) begin
      result_valid_o = 1'b1;
      {result_addr_o, result_data_o} = {address_q, 15'd0, capped, 8'd0, count_q};
    end
    // Each joint gave a token, but for the last of a seat that was not capped.
    if (state_q == Joints) begin
      result_valid_o = 1'b1;
      {result_addr_o, result_data_o} = {address_q + 64'd4, 32'(count_q) + 32'(!capped)};
    end
  end

  assign done_valid_o = state_q == Done;
  assign done_o = done_q;

  assign next_seat = (state_q == Seat && !left_q[0]) || (state_q == Rank && job_done_i) || (state_q == Joints && result_ready_i);
  always_ff @(posedge clk_i) begin
    if (next_seat) begin
      seat_q <= seat_q + SeatW'(1);
      left_q <= left_q >> 1;
      address_q <= address_q + 64'(batch_q.result_stride);
    end
    count_q <= rank_counts_i[seat_q];

    unique case (state_q)
      Idle: begin
        batch_q <= rank_batch_i;
        done_q <= rank_done_i;
        ends_q <= rank_ends_i;
        seat_q <= '0;
        left_q <= (rank_ends_i && rank_done_i.fault != FaultNone) ? '0 : rank_seats_i;
        address_q <= rank_batch_i.result;
        if (rank_valid_i) state_q <= Seat;
      end
      Seat: begin
        if (left_q == '0) state_q <= ends_q ? Done : Idle;
        else if (left_q[0]) state_q <= (greedy && ends_q) ? Tokens : Offer;
      end
      Offer: if (job_ready_i) state_q <= Rank;
      Rank: if (job_done_i) state_q <= Seat;
      Tokens: if (result_ready_i) state_q <= Joints;
      Joints: if (result_ready_i) state_q <= Seat;
      default: if (done_ready_i) state_q <= Idle;
    endcase
    if (rst_i) state_q <= Idle;
  end

  logic unused;
  assign unused = &{1'b0, batch_q, rank_batch_i};  // fields of the threads
endmodule
