// SPDX-License-Identifier: Apache-2.0
// The one order of both threads' segments: decided when the weight stream is told of them, kept until each is released to array and finish unit.
//
// A decode segment that waits for nothing goes first, but takes turns with those of encode: a decode batch often has few seats, so that its tiles come
// slower than they are used, and an encode segment between lets the stream catch up. Then one of encode; a decode segment that waits only if encode has no batch: at the head it
// would hold up what encode is about to offer. Of a batch that is not fetched nothing is
// ordered while the other thread has a batch. The head waits only for what went before it and, at most, for a fetch.
module segment_order
  import gharial_pkg::*;
  import seat_pkg::*;
  import thread_pkg::*;
#(
    parameter int unsigned Ahead = gharial_config_pkg::Ahead,  // tiles that the stream reads ahead
    parameter int unsigned Depth = 16  // segments in order, a power of two
) (
    input logic clk_i,
    input logic rst_i,

    // [0] encode, [1] decode.
    input  logic        seg_valid_i  [2],
    output logic        seg_ready_o  [2],
    input  cut_t        seg_i        [2],
    input  mark_t       retired_i    [2],
    input  logic  [1:0] fetched_i    [2],  // by side
    input  logic        busy_i       [2],  // the thread has a batch
    input  logic        logits_free_i,

    output logic        stream_valid_o,
    input  logic        stream_ready_i,
    output logic [23:0] stream_tile_o,
    output logic [15:0] stream_tiles_o,

    output logic     array_valid_o,
    input  logic     array_ready_i,
    output logic     finish_valid_o,
    input  logic     finish_ready_i,
    output segment_t segment_o,

    output logic waits_o,
    output logic idle_o
);
  localparam int unsigned E = 0;
  localparam int unsigned D = 1;
  localparam int unsigned Spare = 4;  // tiles used until a segment has been put in order behind one that left
  localparam int unsigned TilesW = 16 + $clog2(Depth) + 1;

  function automatic logic met(input logic logit, input mark_t mark, input mark_t retired, input logic fetched,
                               input logic logits_free);
    return fetched && reached(retired, mark) && (!logit || logits_free);
  endfunction

  // Which comes next: what is known of each offer is a clock old, and once an offer may go, nothing changes that.
  logic there_q[2], fetched_q[2], met_q[2], pick_valid, pick, staged_valid_q, push;
  cut_t staged_q;
  always_ff @(posedge clk_i) begin
    for (int t = 0; t < 2; t++) begin
      there_q[t]   <= seg_valid_i[t] && !seg_ready_o[t] && !rst_i;
      fetched_q[t] <= fetched_i[t][seg_i[t].side];
      met_q[t]     <= met(seg_i[t].logit, seg_i[t].mark, retired_i[t], fetched_i[t][seg_i[t].side], logits_free_i);
    end
  end
  logic was_d_q;  // the segment before was a decode segment
  always_comb begin
    pick_valid = 1'b1;
    pick = 1'(D);
    if (there_q[D] && met_q[D] && !(was_d_q && there_q[E] && fetched_q[E])) pick = 1'(D);
    else if (there_q[E] && fetched_q[E]) pick = 1'(E);
    else if (there_q[D] && (met_q[D] || (fetched_q[D] && !busy_i[E]))) pick = 1'(D);
    else if (there_q[E] && !busy_i[D]) pick = 1'(E);
    else if (there_q[D] && !busy_i[E]) pick = 1'(D);
    else pick_valid = 1'b0;
  end
  for (genvar t = 0; t < 2; t++) begin : gen_ready
    assign seg_ready_o[t] = !staged_valid_q && pick_valid && pick == 1'(t);
  end
  always_ff @(posedge clk_i) begin
    if (!staged_valid_q) staged_q <= seg_i[pick];
    if (!staged_valid_q && pick_valid) was_d_q <= pick == 1'(D);
    if (rst_i) was_d_q <= 1'b0;
    if (rst_i) staged_valid_q <= 1'b0;
    else if (!staged_valid_q) staged_valid_q <= pick_valid;
    else if (push) staged_valid_q <= 1'b0;
  end

  // To the stream and into the queue at once.
  logic room, out_valid, out_ready, leaves;
  logic [TilesW-1:0] tiles_q;  // in order, not released
  cut_t out;
  assign stream_valid_o = staged_valid_q && room && 32'(tiles_q) < Ahead + Spare;
  assign stream_tile_o = staged_q.segment.tile;
  assign stream_tiles_o = staged_q.segment.col_tiles;
  assign push = stream_valid_o && stream_ready_i;
  small_fifo #(
      .Width($bits(cut_t)),
      .Depth(Depth)
  ) u_queue (
      .clk_i,
      .rst_i,
      .push_valid_i(push),
      .push_ready_o(room),
      .push_data_i (staged_q),
      .pop_valid_o (out_valid),
      .pop_ready_i (out_ready),
      .pop_data_o  (out)
  );

  // The head, released to each of two units when it likes.
  logic head_valid_q, may_q, array_has_q, finish_has_q, head_fetched;
  cut_t head_q;
  thread_e head_thread;
  assign head_thread = head_q.segment.thread;
  assign head_fetched = fetched_i[head_thread][head_q.side];
  assign segment_o = head_q.segment;
  assign array_valid_o = may_q && !array_has_q;
  assign finish_valid_o = may_q && !finish_has_q;
  assign leaves = may_q && (array_has_q || array_ready_i) && (finish_has_q || finish_ready_i);
  assign out_ready = !head_valid_q || leaves;
  assign waits_o = head_valid_q && !may_q && head_fetched;
  assign idle_o = !staged_valid_q && !out_valid && !head_valid_q;
  always_ff @(posedge clk_i) begin
    if (out_ready) head_q <= out;
    if (rst_i) begin
      head_valid_q <= 1'b0;
      may_q <= 1'b0;
      array_has_q <= 1'b0;
      finish_has_q <= 1'b0;
      tiles_q <= '0;
    end else begin
      if (out_ready) head_valid_q <= out_valid;
      may_q <= head_valid_q && !leaves && met(
          head_q.logit, head_q.mark, retired_i[head_thread], head_fetched, logits_free_i
      );
      array_has_q <= !leaves && (array_has_q || (array_valid_o && array_ready_i));
      finish_has_q <= !leaves && (finish_has_q || (finish_valid_o && finish_ready_i));
      tiles_q <= tiles_q + (push ? TilesW'(staged_q.segment.col_tiles) : '0) - (leaves ? TilesW'(head_q.segment.col_tiles) : '0);
    end
  end
endmodule
