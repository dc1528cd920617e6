// SPDX-License-Identifier: Apache-2.0
// Encode thread: section encode for the batches that come, two on their way at most, and their ends in order.
module batch_encode
  import gharial_pkg::*;
  import sequencer_pkg::*;
  import seat_pkg::*;
  import thread_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

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

    output logic        done_valid_o,
    input  logic        done_ready_i,
    output batch_done_t done_o,

    output logic busy_o
);
  typedef struct packed {
    logic valid;
    logic over;
    batch_done_t done;
  } way_t;

  way_t way_q[2], next[2];  // [0] is the oldest
  batch_done_t fresh;
  logic push, pop, ending;
  logic [SeatW-1:0] first_seat;

  // Seats are taken from 0 on, and all run the section: a fault is seat 0's.
  assign first_seat = '0;
  assign fresh = '{
          side: batch_i.side,
          fault: FaultNone,
          unit: UnitNone,
          detail: '0,
          entry: 16'(first_seat),
          predictions: '0,
          joints: '0
      };

  assign run_valid_o = batch_valid_i && !way_q[1].valid;
  assign batch_ready_o = run_ready_i && !way_q[1].valid;
  assign run_o = '{section: SectionEncode, side: batch_i.side, seats: batch_i.seats, vectors: batch_i.vectors};
  assign push = run_valid_o && run_ready_i;
  assign done_valid_o = way_q[0].valid && way_q[0].over;
  assign done_o = way_q[0].done;
  assign pop = done_valid_o && done_ready_i;
  assign busy_o = way_q[0].valid;

  // The run that is done is the oldest that is not over.
  assign ending = way_q[0].over;
  always_comb begin
    next = way_q;
    if (run_done_i) begin
      next[ending].over = 1'b1;
      next[ending].done.fault = run_fault_i;
      next[ending].done.unit = run_unit_i;
      next[ending].done.detail = run_detail_i;
    end
    if (pop) begin
      next[0] = next[1];
      next[1].valid = 1'b0;
    end
    if (push) next[next[0].valid] = '{valid: 1'b1, over: 1'b0, done: fresh};
  end

  always_ff @(posedge clk_i) begin
    way_q <= next;
    if (rst_i) begin
      way_q[0].valid <= 1'b0;
      way_q[1].valid <= 1'b0;
    end
  end

  logic unused;
  assign unused = &{1'b0, batch_i};  // fields of the decode thread
endmodule
