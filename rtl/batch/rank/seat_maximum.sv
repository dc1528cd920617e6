// SPDX-License-Identifier: Apache-2.0
// The largest logit of each seat, as logits come: a tree over a word's lanes, one level a clock, then against the seat's running one.
//
// A seat's words come in ascending order, so among equal logits the lowest class wins: a later one must be greater. Slice 0 begins anew; a seat
// that has no word keeps its maximum.
module seat_maximum #(
    parameter int unsigned Seats = 4,
    parameter int unsigned WordLanes = 8,  // logits a word, a power of two
    parameter int unsigned SeatW = (Seats > 1) ? $clog2(Seats) : 1  // derived
) (
    input logic clk_i,
    input logic rst_i,

    input logic        [     15:0] classes_i,
    input logic                    logit_valid_i,
    input logic        [SeatW-1:0] logit_seat_i,
    input logic        [     15:0] logit_slice_i,
    input logic signed [     15:0] logit_data_i [WordLanes],
    input logic                    logit_last_i,

    output logic max_valid_o,  // the last word of a joint is in

    // Two who look; data a clock later.
    input  logic        [SeatW-1:0] max_seat_i,
    output logic        [     15:0] max_class_o,
    output logic signed [     15:0] max_logit_o,
    input  logic        [SeatW-1:0] job_seat_i,
    output logic        [     15:0] job_class_o,
    output logic signed [     15:0] job_logit_o
);
  localparam int unsigned LaneW = $clog2(WordLanes);
  localparam int unsigned SliceW = 16 - LaneW;
  localparam logic signed [16:0] Absent = -17'sd65536;  // below all logits: no class

  if (WordLanes < 2 || WordLanes != 1 << LaneW) begin : gen_check
    $error("%m: WordLanes must be a power of two, at least 2");
  end

  // Node n of the tree has nodes 2n and 2n + 1 below it; lanes are WordLanes and on.
  typedef struct packed {
    logic signed [16:0] logit;
    logic [LaneW-1:0]   lane;
  } node_t;

  node_t [2*WordLanes-1:0] node_q;  // 0 is none; packed, since it is registers and no memory
  logic valid_q[LaneW+1], last_q[LaneW+1];
  logic [ SeatW-1:0] seat_q [LaneW+1];
  logic [SliceW-1:0] slice_q[LaneW+1];

  always_ff @(posedge clk_i) begin
    node_q[0] <= '0;
    for (int lane = 0; lane < int'(WordLanes); lane++) begin
      node_q[int'(WordLanes)+lane].lane <= LaneW'(lane);
      if (SliceW'(logit_slice_i) < classes_i[15:LaneW] ||
          (SliceW'(logit_slice_i) == classes_i[15:LaneW] && LaneW'(lane) < classes_i[LaneW-1:0])) begin
        node_q[int'(WordLanes)+lane].logit <= 17'(logit_data_i[lane]);
      end else begin
        node_q[int'(WordLanes)+lane].logit <= Absent;
      end
    end
    for (int n = 1; n < int'(WordLanes); n++) begin
      node_q[n] <= (node_q[2*n+1].logit > node_q[2*n].logit) ? node_q[2*n+1] : node_q[2*n];
    end

    seat_q[0]  <= logit_seat_i;
    slice_q[0] <= SliceW'(logit_slice_i);
    for (int level = 1; level <= int'(LaneW); level++) begin
      seat_q[level]  <= seat_q[level-1];
      slice_q[level] <= slice_q[level-1];
    end
    for (int level = 0; level <= int'(LaneW); level++) begin
      valid_q[level] <= !rst_i && ((level == 0) ? logit_valid_i : valid_q[(level>0)?level-1 : 0]);
      last_q[level]  <= (level == 0) ? logit_last_i : last_q[(level>0)?level-1 : 0];
    end
  end

  // The running ones, in look-up tables.
  typedef struct packed {
    logic signed [15:0] logit;
    logic [15:0] index;
  } best_t;

  (* ram_style = "distributed" *)
  best_t best[Seats];
  logic [SeatW-1:0] seat;
  node_t root;
  logic better;

  assign root   = node_q[1];
  assign seat   = seat_q[LaneW];
  assign better = slice_q[LaneW] == '0 || root.logit > 17'(best[seat].logit);

  always_ff @(posedge clk_i) begin
    if (valid_q[LaneW] && better) best[seat] <= '{logit: root.logit[15:0], index: {slice_q[LaneW], root.lane}};
    max_valid_o <= valid_q[LaneW] && last_q[LaneW] && !rst_i;
    {max_logit_o, max_class_o} <= best[max_seat_i];
    {job_logit_o, job_class_o} <= best[job_seat_i];
  end

  logic unused;
  assign unused = &{1'b0, logit_slice_i[15:SliceW], node_q[0]};  // no class has so high a number; the tree's roots are node 1
endmodule
