// SPDX-License-Identifier: Apache-2.0
// Takes the array unit's results, segment by segment, and says of each slice what is to become of it and where.
//
// A slice taken in clock 0 has its scale word read in that clock; the rest of its control comes out, registered, in clock 4. A result is held
// back only where cells, a sum or a write port would not be ready for it (docs/blocks/finish_unit.md).
module finish_walk
  import gharial_pkg::*;
  import seat_pkg::*;
  import slice_pkg::*;
#(
    parameter int unsigned CellClocks = 13,  // from the last slice that writes a cell to the first that may read it
    parameter int unsigned SumClocks  = 4    // likewise a sum
) (
    input logic clk_i,
    input logic rst_i,

    input  logic     seg_valid_i,
    output logic     seg_ready_o,
    input  segment_t seg_i,

    input  logic              res_valid_i,
    output logic              res_ready_o,
    input  logic [ SeatW-1:0] res_seat_i,
    input  logic [       1:0] res_vector_i,
    input  logic [SliceW-1:0] res_slice_i,
    input  logic              res_last_i,

    // Clock 0.
    output logic                  scale_en_o,
    output logic [ScaleAddrW-1:0] scale_addr_o,

    // Clock 4.
    output logic                         valid_o,
    output logic                         fresh_o,      // S starts at the bias
    output logic                         keep_o,       // S is kept
    output logic                         ends_o,       // the last slice of an instruction
    output thread_e                      thread_o,
    output logic         [ SumAddrW-1:0] sum_addr_o,
    output logic         [BiasAddrW-1:0] bias_addr_o,
    output logic         [          3:0] shift_o,
    output logic         [          3:0] qh_o,
    output logic         [          6:0] i8_high_o,
    output logic                         i8_signed_o,
    output slice_act_t                   act_o,
    output slice_cell_t                  cell_o,
    output slice_logit_t                 logit_o
);
  localparam int unsigned GroupW = $clog2(Seats * gharial_config_pkg::SumGroups);
  // Clocks without a result after the last one of a segment, and after one whose outputs take several words.
  localparam int unsigned SegmentPause = (SumClocks > Slices) ? SumClocks - Slices : 0;

  if (Slices < 2 || Lanes != 1 << LanesW) begin : gen_check_lanes
    $error("%m: Lanes must be a power of two, 2 slices at least a row group");
  end
  if (Lanes >= Cols || Cols > gharial_config_pkg::Rows) begin : gen_check_cols
    $error("%m: Cols must be more than Lanes, at most Rows");
  end

  // What is needed of a segment.
  typedef struct packed {
    thread_e thread;
    logic ends;
    logic [1:0] first_vector;
    logic [3:0] first;
    logic [3:0] last;
    logic [GroupW-1:0] sum_group;
    logic [GroupW-1:0] sum_stride;
    logic [ScaleAddrW-SliceW-1:0] scale_group;
    logic [BiasAddrW-SliceW-1:0] bias_group;
    post_e post;
    logic [15:0] group;
    logic [3:0] shift;
    logic [3:0] qh;
    logic [6:0] i8_high;
    logic i8_signed;
    logic [SeatActW-1:0] destination;
    logic [15:0] destination_stride;
    logic [4:0] destination_shift;
    logic second_valid;
    logic [SeatActW-1:0] second;
    logic [4:0] second_shift;
    logic [SeatCellW-1:0] cell_unit;
    logic [4:0] cell_shift;
  } part_t;

  part_t given, next, seg_q;
  logic next_valid, busy_q, take, load, given_is_cell, next_is_cell;
  logic [SeatCellW-1:0] next_cell, given_cell;

  always_comb begin
    given = '{
        thread: seg_i.thread,
        ends: seg_i.ends,
        first_vector: seg_i.first_vector,
        first: seg_i.first,
        last: seg_i.last,
        sum_group: GroupW'(seg_i.sum_group),
        sum_stride: GroupW'(seg_i.sum_stride),
        scale_group: seg_i.scale_group[ScaleAddrW-SliceW-1:0],
        bias_group: seg_i.bias_group[BiasAddrW-SliceW-1:0],
        post: seg_i.post,
        group: seg_i.group,
        shift: seg_i.shift,
        qh: seg_i.qh,
        i8_high: seg_i.i8_high,
        i8_signed: seg_i.i8_signed,
        destination: seg_i.destination,
        destination_stride: seg_i.destination_stride,
        destination_shift: seg_i.destination_shift,
        second_valid: seg_i.second_valid,
        second: seg_i.second,
        second_shift: seg_i.second_shift,
        cell_unit: seg_i.cell_unit,
        cell_shift: seg_i.cell_shift
    };
  end

  // Whether it reads cells, and which, is known from here on, so that they need but be compared.
  always_comb begin
    given_is_cell = 1'b0;
    for (int unsigned v = 0; v < MaxVectors; v++) begin
      given_is_cell |= seg_i.last[v] && 2'(v) - seg_i.first_vector <= seg_i.vectors_less_1;
    end
    if (seg_i.post != PostCell) given_is_cell = 1'b0;
  end
  assign given_cell = seg_i.cell_unit + SeatCellW'(seg_i.group);

  small_fifo #(
      .Width($bits(part_t) + 1 + SeatCellW),
      .Depth(8)
  ) u_segments (
      .clk_i,
      .rst_i,
      .push_valid_i(seg_valid_i),
      .push_ready_o(seg_ready_o),
      .push_data_i ({given, given_is_cell, given_cell}),
      .pop_valid_o (next_valid),
      .pop_ready_i (load),
      .pop_data_o  ({next, next_is_cell, next_cell})
  );

  // The next segment is taken over in the clock of the last result, so that there is no gap.
  logic ended, cell_wait, pause;

  assign take  = res_valid_i && res_ready_o;
  assign load  = !busy_q || (take && res_last_i);
  assign ended = seg_q.last[res_vector_i];

  always_ff @(posedge clk_i) begin
    if (rst_i) busy_q <= 1'b0;
    else if (load) busy_q <= next_valid;
    if (load) seg_q <= next;
  end

  cell_watch #(
      .Clocks(CellClocks)
  ) u_watch (
      .clk_i,
      .rst_i,
      .next_valid_i(next_valid),
      .next_is_cell_i(next_is_cell),
      .next_cell_i(next_cell),
      .begin_i(load),
      .cell_taken_i(take && ended && seg_q.post == PostCell),
      .wait_o(cell_wait)
  );

  if (SegmentPause > 0 || I16Writes > 1 || I8Writes > 1) begin : gen_pause
    // Within a segment, and after it.
    localparam int unsigned I16Pause = I16Writes - 1;
    localparam int unsigned I8Pause = I8Writes - 1;
    localparam int unsigned I16Longer = (I16Pause > SegmentPause) ? I16Pause : SegmentPause;
    localparam int unsigned I8Longer = (I8Pause > SegmentPause) ? I8Pause : SegmentPause;
    localparam int unsigned CountW = $clog2(I16Longer + I8Longer + 1);
    logic [CountW-1:0] left_q, wanted;

    always_comb begin
      if (ended && seg_q.post == PostI16) wanted = res_last_i ? CountW'(I16Longer) : CountW'(I16Pause);
      else if (ended && seg_q.post == PostI8) wanted = res_last_i ? CountW'(I8Longer) : CountW'(I8Pause);
      else wanted = res_last_i ? CountW'(SegmentPause) : '0;
    end

    always_ff @(posedge clk_i) begin
      if (rst_i) left_q <= '0;
      else if (take) left_q <= wanted;
      else if (left_q != '0) left_q <= left_q - 1'b1;
    end
    assign pause = left_q != '0;
  end else begin : gen_no_pause
    assign pause = 1'b0;
  end

  assign res_ready_o  = busy_q && !cell_wait && !pause;
  assign scale_en_o   = res_valid_i;  // taken or not
  assign scale_addr_o = {seg_q.scale_group, res_slice_i};

  // Clock 1: as it was taken.
  part_t seg1_q;
  logic valid1_q, last1_q;
  logic [SeatW-1:0] seat1_q;
  logic [1:0] vector1_q, step1_q;  // of the instruction; of those done now
  logic [SliceW-1:0] slice1_q;

  always_ff @(posedge clk_i) begin
    valid1_q <= take && !rst_i;
    seg1_q <= seg_q;
    seat1_q <= res_seat_i;
    vector1_q <= res_vector_i;
    step1_q <= res_vector_i - seg_q.first_vector;
    slice1_q <= res_slice_i;
    last1_q <= res_last_i;
  end

  // Clock 2: what seat, vector, group and slice add to each address.
  part_t seg2_q;
  logic valid2_q, last2_q, ended2_q, fresh2_q;
  logic [ SeatW-1:0] seat2_q;
  logic [SliceW-1:0] slice2_q;
  logic [GroupW-1:0] seat_sum2_q, vector_sum2_q;
  logic [SeatActW-1:0] seat_act2_q, seat_second2_q, vector2_q;
  logic [SeatCellW-1:0] seat_cell2_q;

  // v * stride for 0 to 3.
  function automatic logic [SeatActW-1:0] times(input logic [1:0] v, input logic [15:0] stride);
    return (v[0] ? SeatActW'(stride) : '0) + (v[1] ? SeatActW'({stride, 1'b0}) : '0);
  endfunction

  always_ff @(posedge clk_i) begin
    valid2_q <= valid1_q && !rst_i;
    seg2_q <= seg1_q;
    last2_q <= last1_q;
    ended2_q <= seg1_q.last[vector1_q];
    fresh2_q <= seg1_q.first[vector1_q];
    seat2_q <= seat1_q;
    slice2_q <= slice1_q;
    seat_sum2_q <= GroupW'(seat1_q * gharial_config_pkg::SumGroups);
    vector_sum2_q <= GroupW'(times(step1_q, 16'(seg1_q.sum_stride)));
    seat_act2_q <= SeatActW'(seat1_q) << seg1_q.destination_shift;
    seat_second2_q <= SeatActW'(seat1_q) << seg1_q.second_shift;
    seat_cell2_q <= SeatCellW'(seat1_q) << seg1_q.cell_shift;
    vector2_q <= times(step1_q, seg1_q.destination_stride);
  end

  // The slice's number within the instruction's outputs: each has Lanes bytes of h, SliceRows bytes of I8 or halfwords of I16.
  logic [15+SliceW:0] number2;
  logic [15+SliceW+LanesW:0] h_byte2;
  logic [15+SliceW+LanesW+2:0] row2, byte2;
  logic [SeatActW-1:0] unit2;

  assign number2 = {seg2_q.group, slice2_q};
  assign h_byte2 = {number2, LanesW'(0)};
  assign row2 = {h_byte2, 2'b00};
  assign byte2 = (seg2_q.post == PostI8) ? row2 : {2'b00, h_byte2};
  assign unit2 = SeatActW'(byte2 >> ByteW);

  // Clock 3: two parts of each address; they are added for clock 4.
  part_t seg3_q;
  logic valid3_q, last3_q, ended3_q, fresh3_q;
  logic [ SeatW-1:0] seat3_q;
  logic [SliceW-1:0] slice3_q;
  logic [GroupW-1:0] sum3_q, vector_sum3_q;
  logic [SeatActW-1:0] target3_q, target_rest3_q, second3_q, unit3_q;
  logic [SeatCellW-1:0] cell3_q, cell_rest3_q;
  logic [ByteW-1:0] byte3_q;
  logic [15:0] number3_q;

  always_ff @(posedge clk_i) begin
    valid3_q <= valid2_q && !rst_i;
    seg3_q <= seg2_q;
    last3_q <= last2_q;
    ended3_q <= ended2_q;
    fresh3_q <= fresh2_q;
    seat3_q <= seat2_q;
    slice3_q <= slice2_q;
    sum3_q <= seg2_q.sum_group + seat_sum2_q;
    vector_sum3_q <= vector_sum2_q;
    target3_q <= seg2_q.destination + seat_act2_q;
    target_rest3_q <= vector2_q + unit2;
    second3_q <= seg2_q.second + seat_second2_q;
    unit3_q <= unit2;
    cell3_q <= seg2_q.cell_unit + seat_cell2_q;
    cell_rest3_q <= (seg2_q.post == PostI16) ? vector2_q + SeatCellW'(row2 >> HalfW) : SeatCellW'(seg2_q.group);
    byte3_q <= byte2[ByteW-1:0];
    number3_q <= 16'(number2);
  end

  always_ff @(posedge clk_i) begin
    valid_o <= valid3_q && !rst_i;
    fresh_o <= fresh3_q;
    keep_o <= !ended3_q;
    ends_o <= last3_q && seg3_q.ends;
    thread_o <= seg3_q.thread;
    sum_addr_o <= {sum3_q + vector_sum3_q, slice3_q};
    bias_addr_o <= {seg3_q.bias_group, slice3_q};
    shift_o <= seg3_q.shift;
    qh_o <= seg3_q.qh;
    i8_high_o <= seg3_q.i8_high;
    i8_signed_o <= seg3_q.i8_signed;
    act_o <= '{
        is_cell: ended3_q && seg3_q.post == PostCell,
        is_i8: ended3_q && seg3_q.post == PostI8,
        target: target3_q + target_rest3_q,
        first_byte: byte3_q,
        second_valid: seg3_q.second_valid,
        second: second3_q + unit3_q
    };
    cell_o <= '{
        is_cell: ended3_q && seg3_q.post == PostCell,
        is_i16: ended3_q && seg3_q.post == PostI16,
        slice: slice3_q,
        addr: cell3_q + cell_rest3_q
    };
    logit_o <= '{
        is_logit: ended3_q && seg3_q.post == PostLogit,
        last: last3_q && seg3_q.ends,
        seat: seat3_q,
        number: number3_q
    };
  end

  // The seats and vectors of a segment come with its results; weights and sources are others' business. What has been used in clocks 1 and 2 goes
  // no further.
  logic unused;
  assign unused = &{1'b0, seg_i, seg3_q};
endmodule
