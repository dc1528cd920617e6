// SPDX-License-Identifier: Apache-2.0
// Decode thread: sections predict and joint for a batch, GREEDY's rounds, and what is to be ranked (docs/batch.md, Decode flow).
//
// Section joint is asked for behind section predict, before that is over. A DECODE batch is left when its joint is over: its results are written while the
// next batch is at work. Between two rounds of GREEDY, the seats that have emitted are handed over to be ranked, and go on.
module batch_decode
  import gharial_pkg::*;
  import sequencer_pkg::*;
  import seat_pkg::*;
  import thread_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    input logic [15:0] blank_i,

    input  logic   batch_valid_i,
    output logic   batch_ready_o,
    input  batch_t batch_i,

    output logic             run_valid_o,
    input  logic             run_ready_i,
    output seat_run_t        run_o,
    input  logic             run_done_i,
    input  fault_e           run_fault_i,
    input  unit_e            run_unit_i,
    input  logic      [31:0] run_detail_i,
    input  logic             run_logits_i,  // the run has given logits: their maxima come

    // What seats have in place of a token, for LOOKUP.
    output logic   [Seats-1:0][15:0] tokens_o,
    output seats_t                   zeros_o,

    // Argmax of the last joint.
    input  logic             max_valid_i,
    output logic [SeatW-1:0] max_seat_o,
    input  logic [     15:0] max_class_i,  // a clock later

    // To be ranked, or the batch's end.
    output logic rank_valid_o,
    input logic rank_ready_i,
    output logic rank_ends_o,
    output seats_t rank_seats_o,
    output batch_t rank_batch_o,
    output batch_done_t rank_done_o,
    output logic [Seats-1:0][7:0] rank_counts_o,  // GREEDY: tokens so far; they stay until all is done with the batch
    input logic rank_idle_i,  // all handed over is done

    output logic busy_o
);
  typedef enum logic [2:0] {
    Take,
    Predict,
    Joint,
    Wait,
    Judge,    // GREEDY: which seats have emitted
    Emit,
    End,
    Finish    // GREEDY: the counts are being written
  } state_e;

  state_e state_q;
  batch_t batch_q;
  batch_done_t done_q;
  seats_t predicts_q, joints_q, emitted_q, capped_q;
  logic [Seats-1:0][ 7:0] counts_q;
  logic [Seats-1:0][15:0] tokens_q;
  logic [SeatW-1:0] seat_q, judged_q;
  logic [1:0] running_q;  // runs asked for and not over
  logic judging_q, max_seen_q, greedy, started, expects_max_q;

  assign greedy = batch_q.operation == CmdGreedy;
  assign batch_ready_o = state_q == Take;
  assign busy_o = state_q != Take;
  assign tokens_o = tokens_q;
  assign zeros_o = batch_q.starts;
  assign max_seat_o = seat_q;

  assign run_valid_o = state_q == Predict || state_q == Joint;
  assign started = run_valid_o && run_ready_i;
  assign run_o = '{
          section: (state_q == Predict) ? SectionPredict : SectionJoint,
          side: batch_q.side,
          seats: (state_q == Predict) ? predicts_q : joints_q,
          vectors: '0
      };

  // The last seat is judged in the first clock of Emit.
  assign rank_valid_o = (state_q == Emit && !judging_q && emitted_q != '0) || state_q == End;
  assign rank_ends_o = state_q == End;
  assign rank_seats_o = (state_q == Emit) ? emitted_q : batch_q.joints;
  assign rank_batch_o = batch_q;
  assign rank_done_o = done_q;
  assign rank_counts_o = counts_q;

  // Steps run, for all seats of a run: added a clock after it was asked for.
  logic [SeatW:0] added;
  logic predict_added_q, joint_added_q;
  seats_t added_q;
  always_comb begin
    added = '0;
    for (int s = 0; s < int'(Seats); s++) added = added + (SeatW + 1)'(added_q[s]);
  end

  // The first seat of a run.
  function automatic logic [15:0] lowest(input seats_t seats);
    logic [15:0] found;
    found = '0;
    for (int s = int'(Seats) - 1; s >= 0; s--) if (seats[s]) found = 16'(s);
    return found;
  endfunction
  logic predict_first_q;  // the oldest run is of section predict

  always_ff @(posedge clk_i) begin
    added_q <= run_o.seats;
    predict_added_q <= started && state_q == Predict;
    joint_added_q <= started && state_q == Joint;
    if (predict_added_q) done_q.predictions <= done_q.predictions + 16'(added);
    if (joint_added_q) done_q.joints <= done_q.joints + 16'(added);
    if (max_valid_i) max_seen_q <= 1'b1;
    judged_q  <= seat_q;
    judging_q <= 1'b0;

    if (run_done_i) begin
      predict_first_q <= 1'b0;
      if (run_logits_i) expects_max_q <= 1'b1;
      if (run_fault_i != FaultNone && done_q.fault == FaultNone) begin
        done_q.fault  <= run_fault_i;
        done_q.unit   <= run_unit_i;
        done_q.detail <= run_detail_i;
        done_q.entry  <= lowest(predict_first_q ? predicts_q : joints_q);
      end
    end

    // The seat whose largest class has come.
    if (judging_q && joints_q[judged_q] && max_class_i != blank_i) begin
      emitted_q[judged_q] <= 1'b1;
      capped_q[judged_q]  <= counts_q[judged_q] + 8'd1 == batch_q.k;
      counts_q[judged_q]  <= counts_q[judged_q] + 8'd1;
      tokens_q[judged_q]  <= max_class_i;
    end

    unique case (state_q)
      Take: begin
        batch_q <= batch_i;
        predicts_q <= batch_i.predicts;
        joints_q <= batch_i.joints;
        tokens_q <= batch_i.tokens;
        counts_q <= '0;
        done_q <= '{
            side: batch_i.side,
            fault: FaultNone,
            unit: UnitNone,
            detail: '0,
            entry: '0,
            predictions: '0,
            joints: '0
        };
        expects_max_q <= 1'b0;
        predict_first_q <= 1'b0;
        if (batch_valid_i) begin
          if (batch_i.predicts != '0) state_q <= Predict;
          else state_q <= (batch_i.joints != '0) ? Joint : End;
        end
      end
      Predict: begin
        expects_max_q   <= 1'b0;
        predict_first_q <= 1'b1;
        if (started) state_q <= (joints_q != '0) ? Joint : Wait;
      end
      Joint: begin
        max_seen_q <= 1'b0;
        if (started) state_q <= Wait;
      end
      Wait: begin
        seat_q <= '0;
        emitted_q <= '0;
        capped_q <= '0;
        if (running_q == '0 && (max_seen_q || !expects_max_q)) begin
          state_q <= (greedy && expects_max_q && done_q.fault == FaultNone) ? Judge : End;
        end
      end
      Judge: begin
        seat_q <= seat_q + SeatW'(1);
        judging_q <= 1'b1;
        if (32'(seat_q) == Seats - 1) state_q <= Emit;
      end
      Emit: begin
        if (rank_valid_o && rank_ready_i) begin
          predicts_q <= emitted_q;
          joints_q <= emitted_q & ~capped_q;
          batch_q.starts <= '0;
          state_q <= Predict;
        end else if (!judging_q && emitted_q == '0) begin
          state_q <= End;
        end
      end
      End: if (rank_ready_i) state_q <= greedy ? Finish : Take;
      default: if (rank_idle_i) state_q <= Take;
    endcase

    if (rst_i) begin
      state_q <= Take;
      running_q <= '0;
      {predict_added_q, joint_added_q} <= '0;
    end else begin
      running_q <= running_q + 2'(started) - 2'(run_done_i);
    end
  end
endmodule
