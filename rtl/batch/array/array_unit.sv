// SPDX-License-Identifier: Apache-2.0
// Array unit of the batch machine: Rows x Cols products a clock, a weight tile standing still while the seats of a batch and their vectors pass.
// Contract and latency: docs/blocks/array_unit.md.
module array_unit
  import seat_pkg::*;
#(
    parameter int unsigned Rows = gharial_config_pkg::Rows,
    parameter int unsigned Cols = gharial_config_pkg::Cols,  // a power of two, at least 2
    parameter int unsigned Lanes = gharial_config_pkg::Lanes,
    parameter int unsigned AccVectors = gharial_config_pkg::AccVectors,  // 1 to 4
    parameter int unsigned Spacing = 8,  // clocks between results of one slice from two segments
    parameter string Multiplier = "GENERIC",  // "DSP48E2" or "GENERIC"
    // Rows of an array_rows, which share registers for what reaches all of them.
    parameter int unsigned GroupRows = (Multiplier == "GENERIC" || Rows < 8) ? Rows : 8
) (
    input logic clk_i,
    input logic rst_i,

    // Segments.
    input  logic     seg_valid_i,
    output logic     seg_ready_o,
    input  segment_t seg_i,

    // Tiles; tile_i two clocks after it was taken.
    input  logic              tile_valid_i,
    output logic              tile_ready_o,
    input  logic [8*Cols-1:0] tile_i      [Rows], // byte c of row r: column c

    // Activations; data two clocks later.
    output logic                act_en_o,
    output logic [SeatActW-1:0] act_addr_o,
    input  logic [  8*Cols-1:0] act_data_i,

    // Results: by seat, vector, slice of 4 * Lanes rows.
    output logic                    res_valid_o,
    input  logic                    res_ready_i,
    output logic signed [     31:0] res_sums_o  [4*Lanes],
    output logic        [SeatW-1:0] res_seat_o,
    output logic        [      1:0] res_vector_o,           // of the instruction
    output logic        [     15:0] res_slice_o,
    output logic                    res_last_o,             // of the segment

    // Counters.
    output logic active_o,   // a step
    output logic starved_o,  // a segment, but no tile
    output logic blocked_o   // a segment and its tile, but no room for results, or a short segment's stretch
);
  localparam int unsigned SliceRows = 4 * Lanes;
  localparam int unsigned Slices = Rows / SliceRows;
  localparam int unsigned SliceW = (Slices > 1) ? $clog2(Slices) : 1;
  localparam int unsigned Accumulators = Seats * AccVectors;
  localparam int unsigned IndexW = (Accumulators > 1) ? $clog2(Accumulators) : 1;
  localparam int unsigned ResultWords = 1 << $clog2(2 * Accumulators);  // two segments of the largest
  localparam int unsigned ResultAddrW = $clog2(ResultWords);
  localparam int unsigned Groups = Rows / GroupRows;
  localparam int unsigned Delay = 2 + 5 + $clog2(Cols);  // memory, multiplier, adder tree

  if (Rows % SliceRows != 0) begin : gen_check_lanes
    $error("%m: Rows must be a multiple of 4 * Lanes");
  end
  if (Rows % GroupRows != 0 || GroupRows % SliceRows != 0 && SliceRows % GroupRows != 0) begin : gen_check_groups
    $error("%m: GroupRows must divide Rows");
  end
  if (Cols < 2 || 1 << $clog2(Cols) != Cols) begin : gen_check_cols
    $error("%m: Cols must be a power of two, at least 2");
  end
  if (AccVectors < 1 || AccVectors > 4) begin : gen_check_vectors
    $error("%m: AccVectors must be 1 to 4");
  end

  typedef struct packed {
    logic valid;
    logic take;
    logic first;
    logic last;
    logic [IndexW-1:0] index;
  } step_t;
  step_t step, due_q[Delay];

  logic room, ends;
  logic [SeatW-1:0] seat;
  logic [1:0] vector;
  array_walker #(
      .AccVectors(AccVectors),
      .IndexW(IndexW)
  ) u_walker (
      .clk_i,
      .rst_i,
      .seg_valid_i,
      .seg_ready_o,
      .seg_i,
      .tile_valid_i,
      .tile_ready_o,
      .room_i       (room),
      .act_en_o,
      .act_addr_o,
      .step_o       (step.valid),
      .step_take_o  (step.take),
      .step_first_o (step.first),
      .step_last_o  (step.last),
      .step_index_o (step.index),
      .step_seat_o  (seat),
      .step_vector_o(vector),
      .step_ends_o  (ends),
      .active_o,
      .starved_o,
      .blocked_o
  );

  always_ff @(posedge clk_i) begin
    due_q[0] <= step;
    for (int i = 1; i < int'(Delay); i++) due_q[i] <= due_q[i-1];
    if (rst_i) begin
      for (int i = 0; i < int'(Delay); i++) due_q[i].valid <= 1'b0;
    end
  end

  logic [ResultAddrW-1:0] waddr, raddr;
  logic read;
  logic [32*Rows-1:0] rsums;
  for (genvar g = 0; g < Groups; g++) begin : gen_group
    logic [8*Cols-1:0] tile[GroupRows];
    if (Groups == 1) begin : gen_whole
      assign tile = tile_i;
    end else begin : gen_part
      assign tile = tile_i[g*GroupRows:(g+1)*GroupRows-1];
    end

    array_rows #(
        .Rows(GroupRows),
        .Cols(Cols),
        .Accumulators(Accumulators),
        .ResultWords(ResultWords),
        .Multiplier(Multiplier)
    ) u_rows (
        .clk_i,
        .load_i      (due_q[0].valid && due_q[0].take),
        .tile_i      (tile),
        .acts_i      (act_data_i),
        .step_i      (due_q[Delay-3].valid),
        .step_first_i(due_q[Delay-3].first),
        .step_last_i (due_q[Delay-3].last),
        .step_index_i(due_q[Delay-3].index),
        .waddr_i     (waddr),
        .read_i      (read),
        .raddr_i     (raddr),
        .rsums_o     (rsums[32*GroupRows*g+:32*GroupRows])
    );
  end

  logic take;
  logic [SliceW-1:0] slice;
  array_drain #(
      .Words  (ResultWords),
      .Slices (Slices),
      .Spacing(Spacing)
  ) u_drain (
      .clk_i,
      .rst_i,
      .room_o        (room),
      .claim_i       (step.valid && step.last),
      .claim_seat_i  (seat),
      .claim_vector_i(vector),
      .claim_last_i  (ends),
      .write_i       (due_q[Delay-1].valid && due_q[Delay-1].last),
      .waddr_o       (waddr),
      .read_o        (read),
      .raddr_o       (raddr),
      .take_o        (take),
      .slice_o       (slice),
      .res_valid_o,
      .res_ready_i,
      .res_seat_o,
      .res_vector_o,
      .res_slice_o,
      .res_last_o
  );

  always_ff @(posedge clk_i) begin
    if (take) begin
      for (int i = 0; i < int'(SliceRows); i++) res_sums_o[i] <= signed'(rsums[32*(32'(slice)*SliceRows+i)+:32]);
    end
  end
endmodule
