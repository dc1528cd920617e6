// SPDX-License-Identifier: Apache-2.0
// The k largest logits of those that come in chunks, in order. Chunks come in ascending order, and of equal logits the lowest class is first.
//
// Most classes are below the k-th best so far and are dropped where they come; the rest wait in a queue and go, lowest class first, one a clock
// into an insertion sorter, in which a candidate must be greater to pass. While candidates wait, the k-th best rises: they are compared once more.
// Comparing with a k-th best that is out of date lets too many through, never too few.
module rank_list #(
    parameter int unsigned RankLanes = 4,
    parameter int unsigned Places = 33,
    parameter int unsigned Depth = 32,  // of the queue, in chunks; a power of two
    parameter int unsigned Ahead = 12  // chunks that may still come after room_o has fallen
) (
    input logic clk_i,
    input logic rst_i,

    input logic       clear_i,
    input logic [5:0] k_i,      // 1 to Places; stays until the next clear

    input  logic                        valid_i,
    input  logic        [         15:0] chunk_i,
    input  logic        [RankLanes-1:0] mask_i,              // the classes that take part
    input  logic signed [         15:0] logit_i[RankLanes],
    output logic                        room_o,
    output logic                        busy_o,              // candidates are on their way

    // The largest; the next one after pop_i.
    input  logic               pop_i,
    output logic        [15:0] class_o,
    output logic signed [15:0] logit_o
);
  localparam int unsigned LaneW = $clog2(RankLanes);

  typedef logic [RankLanes-1:0][15:0] lanes_t;

  typedef struct packed {
    logic [15:0] chunk;
    logic [RankLanes-1:0] mask;
    lanes_t logit;
  } some_t;

  // The k-th best so far.
  logic limit_q;
  logic signed [15:0] limit_logit_q;

  // Those above it.
  some_t found_q;
  logic found_any, queue_ready;
  assign found_any = found_q.mask != '0;

  always_ff @(posedge clk_i) begin
    found_q.chunk <= chunk_i;
    for (int lane = 0; lane < int'(RankLanes); lane++) begin
      found_q.logit[lane] <= logit_i[lane];
      found_q.mask[lane]  <= valid_i && mask_i[lane] && (!limit_q || logit_i[lane] > limit_logit_q) && !rst_i;
    end
  end

  some_t queue_head;
  logic queue_valid, head_takes;

  small_fifo #(
      .Width($bits(some_t)),
      .Depth(Depth)
  ) u_queue (
      .clk_i,
      .rst_i,
      .push_valid_i(found_any),
      .push_ready_o(queue_ready),
      .push_data_i (found_q),
      .pop_valid_o (queue_valid),
      .pop_ready_i (head_takes),
      .pop_data_o  (queue_head)
  );

  localparam int unsigned CountW = $clog2(Depth + 1);
  logic [CountW-1:0] count_q;
  always_ff @(posedge clk_i) begin
    if (rst_i) count_q <= '0;
    else count_q <= count_q + CountW'(found_any) - CountW'(queue_valid && head_takes);
    room_o <= count_q <= CountW'(Depth - Ahead);
  end

  // One by one, lowest class first.
  some_t head_q;
  logic [RankLanes-1:0] lowest, above;
  assign lowest = head_q.mask & (~head_q.mask + RankLanes'(1));
  assign head_takes = (head_q.mask & ~lowest) == '0;

  logic candidate_q;
  logic [15:0] candidate_class_q;
  logic signed [15:0] candidate_logit_q;
  logic [LaneW-1:0] lane_picked;
  logic [15:0] logit_picked;

  always_comb begin
    lane_picked  = '0;
    logit_picked = '0;
    for (int lane = 0; lane < int'(RankLanes); lane++) begin
      above[lane] = !limit_q || signed'(head_q.logit[lane]) > limit_logit_q;
      if (lowest[lane]) begin
        lane_picked |= LaneW'(lane);
        logit_picked |= head_q.logit[lane];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (head_takes) begin
      head_q.chunk <= queue_head.chunk;
      head_q.logit <= queue_head.logit;
    end
    candidate_class_q <= {head_q.chunk[15-LaneW:0], lane_picked};
    candidate_logit_q <= logit_picked;
    if (rst_i) begin
      head_q.mask <= '0;
      candidate_q <= 1'b0;
    end else begin
      if (head_takes) head_q.mask <= queue_valid ? queue_head.mask : '0;
      else head_q.mask <= head_q.mask & ~lowest & above;
      candidate_q <= head_q.mask != '0;
    end
  end
  assign busy_o = found_any || queue_valid || head_q.mask != '0 || candidate_q;

  // The sorter.
  typedef struct packed {
    logic valid;
    logic [15:0] index;
    logic signed [15:0] logit;
  } place_t;

  place_t [Places-1:0] place_q;  // packed: nothing that synthesis would take for a memory
  place_t candidate;
  logic [Places-1:0] passed;  // the candidate passes what is in this place

  assign candidate = '{valid: 1'b1, index: candidate_class_q, logit: candidate_logit_q};
  assign class_o   = place_q[0].index;
  assign logit_o   = place_q[0].logit;

  always_comb begin
    for (int p = 0; p < int'(Places); p++) begin
      passed[p] = !place_q[p].valid || candidate_logit_q > place_q[p].logit;
    end
  end

  always_ff @(posedge clk_i) begin
    for (int p = 0; p < int'(Places); p++) begin
      if (clear_i) begin
        place_q[p].valid <= 1'b0;
      end else if (candidate_q) begin
        if (passed[p]) place_q[p] <= (p > 0 && passed[(p>0)?p-1 : 0]) ? place_q[(p>0)?p-1 : 0] : candidate;
      end else if (pop_i) begin
        if (p + 1 < int'(Places)) place_q[p] <= place_q[p+1];
        else place_q[p].valid <= 1'b0;
      end
    end
  end

  logic kth_valid;
  logic signed [15:0] kth_logit;
  always_comb begin
    kth_valid = 1'b0;
    kth_logit = '0;
    for (int p = 0; p < int'(Places); p++) begin
      if (k_i == 6'(p + 1)) begin
        kth_valid |= place_q[p].valid;
        kth_logit |= place_q[p].logit;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    limit_q <= kth_valid && !clear_i && !rst_i;
    limit_logit_q <= kth_logit;
  end

`ifdef FORMAL
  always_ff @(posedge clk_i) if (!rst_i && found_any) assert (queue_ready);
`else
  logic unused;
  assign unused = queue_ready;  // there is room: room_o
`endif
endmodule
