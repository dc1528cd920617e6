// SPDX-License-Identifier: Apache-2.0
// The survivors of the fuzzy top-k (docs/numerics.md, section 9): of the eight classes of a block and lane the largest, of equal ones the lowest.
//
// The first pass over a seat's logits keeps, for each block and lane, which vector survives, and finds the smallest survivor; the second asks
// which classes of a chunk survive.
module fuzzy_survivors #(
    parameter int unsigned RankLanes  = 4,   // classes a chunk, a power of two, at most 32
    parameter int unsigned MaxClasses = 512
) (
    input logic clk_i,
    input logic rst_i,

    // First pass: chunks in ascending order, then, when the last has been in for three clocks, collect_i for RankLanes clocks.
    input  logic               clear_i,
    input  logic               valid_i,
    input  logic        [15:0] chunk_i,
    input  logic signed [15:0] logit_i  [RankLanes],
    input  logic               collect_i,
    output logic signed [15:0] floor_o,               // smallest survivor

    // Second pass; four clocks after re_i.
    input  logic                 re_i,
    input  logic [         15:0] rchunk_i,
    output logic [RankLanes-1:0] survives_o
);
  localparam int unsigned BlockLanes = 32;
  localparam int unsigned Vectors = 8;
  localparam int unsigned VectorW = $clog2(Vectors);
  localparam int unsigned Groups = BlockLanes / RankLanes;  // chunks a vector
  localparam int unsigned GroupW = $clog2(Groups);
  localparam int unsigned Blocks = (MaxClasses + BlockLanes * Vectors - 1) / (BlockLanes * Vectors);
  localparam int unsigned AddrW = $clog2(Blocks * Groups);
  localparam int unsigned MostDistributed = 64;  // words of a memory that is none of block RAM
  localparam logic signed [15:0] Most = 16'sh7FFF;

  if (Groups == 0 || BlockLanes != RankLanes << GroupW || Blocks * Groups < 2) begin : gen_check
    $error("%m: RankLanes must be a power of two in 1..32, and more than a chunk for all survivors");
  end

  // Of a chunk: its vector, and the place of its lanes, those of all blocks in a row.
  function automatic logic [VectorW-1:0] vector_of(input logic [15:0] chunk);
    return VectorW'(chunk >> GroupW);
  endfunction

  function automatic logic [15:0] place_of(input logic [15:0] chunk);
    return 16'((chunk >> (GroupW + VectorW)) << GroupW) | (chunk & 16'(Groups - 1));
  endfunction

  // Best of each lane in the present block so far.
  typedef struct packed {
    logic [RankLanes-1:0][15:0] logit;
    logic [RankLanes-1:0][VectorW-1:0] vector;
  } lanes_t;

  lanes_t so_far, updated;
  logic valid_q;
  logic [15:0] chunk_q;
  logic signed [15:0] logit_q[RankLanes];
  logic [VectorW-1:0] vector;
  logic ends;  // of the block
  assign vector = vector_of(chunk_q);
  assign ends   = vector == VectorW'(Vectors - 1);

  always_ff @(posedge clk_i) begin
    valid_q <= valid_i && !rst_i;
    chunk_q <= chunk_i;
    for (int lane = 0; lane < int'(RankLanes); lane++) logit_q[lane] <= logit_i[lane];
  end

  // The same lanes come again after all others at the earliest: what was written is there.
  if (Groups > 1) begin : gen_groups
    lanes_t read, read_q;
    lut_ram #(
        .Width($bits(lanes_t)),
        .Words(Groups)
    ) u_best (
        .clk_i,
        .we_i(valid_q),
        .waddr_i(chunk_q[GroupW-1:0]),
        .wdata_i(updated),
        .raddr_i(chunk_i[GroupW-1:0]),
        .rdata_o(read)
    );
    always_ff @(posedge clk_i) read_q <= read;
    assign so_far = read_q;
  end else begin : gen_group
    lanes_t best_q;
    always_ff @(posedge clk_i) if (valid_q) best_q <= updated;
    assign so_far = best_q;
  end

  always_comb begin
    updated = so_far;
    for (int lane = 0; lane < int'(RankLanes); lane++) begin
      if (vector == '0 || logit_q[lane] > signed'(so_far.logit[lane])) begin
        updated.logit[lane]  = logit_q[lane];
        updated.vector[lane] = vector;
      end
    end
  end

  // Survivors of a block, their smallest by lane, and of all lanes.
  logic done_q;
  lanes_t done_lanes_q;
  logic [15:0] done_place_q;
  logic signed [15:0] least_q[RankLanes];

  always_ff @(posedge clk_i) begin
    done_q <= valid_q && ends && !rst_i;
    done_lanes_q <= updated;
    done_place_q <= place_of(chunk_q);
    for (int lane = 0; lane < int'(RankLanes); lane++) begin
      if (clear_i) least_q[lane] <= Most;
      else if (collect_i) least_q[lane] <= least_q[(lane+1)%int'(RankLanes)];
      else if (done_q && signed'(done_lanes_q.logit[lane]) < least_q[lane]) least_q[lane] <= done_lanes_q.logit[lane];
    end
    if (clear_i) floor_o <= Most;
    else if (collect_i && least_q[0] < floor_o) floor_o <= least_q[0];
  end

  // Which vector survives.
  logic re_q;
  logic [15:0] rplace_q;
  logic [VectorW-1:0] rvector_q[3];
  logic [RankLanes-1:0][VectorW-1:0] winner;

  if (Blocks * Groups > MostDistributed) begin : gen_block
    ram_1r1w #(
        .Width(RankLanes * VectorW),
        .Words(Blocks * Groups)
    ) u_winners (
        .clk_i,
        .we_i(done_q),
        .waddr_i(AddrW'(done_place_q)),
        .wdata_i(done_lanes_q.vector),
        .re_i(re_q),
        .raddr_i(AddrW'(rplace_q)),
        .rdata_o(winner)
    );
  end else begin : gen_distributed
    logic [RankLanes-1:0][VectorW-1:0] read, read_q;
    lut_ram #(
        .Width(RankLanes * VectorW),
        .Words(Blocks * Groups)
    ) u_winners (
        .clk_i,
        .we_i(done_q),
        .waddr_i(AddrW'(done_place_q)),
        .wdata_i(done_lanes_q.vector),
        .raddr_i(AddrW'(rplace_q)),
        .rdata_o(read)
    );
    always_ff @(posedge clk_i) begin
      if (re_q) read_q <= read;
      winner <= read_q;
    end
  end

  always_ff @(posedge clk_i) begin
    re_q <= re_i;
    rplace_q <= place_of(rchunk_i);
    rvector_q[0] <= vector_of(rchunk_i);
    rvector_q[1] <= rvector_q[0];
    rvector_q[2] <= rvector_q[1];
    for (int lane = 0; lane < int'(RankLanes); lane++) survives_o[lane] <= winner[lane] == rvector_q[2];
  end

  logic unused;
  assign unused = &{1'b0, done_place_q, rplace_q};  // wider than the memory
endmodule
