// SPDX-License-Identifier: Apache-2.0
// Takes the matrix unit's results, job by job, and says of each what is to become of it and where.
//
// A unit taken in clock 0 has its scale word read in that clock; the rest of its control comes out, registered, in clock 2.
module unit_walk
  import gharial_pkg::*;
  import vector_pkg::*;
#(
    parameter int unsigned Rows = 32,
    parameter int unsigned Cols = 8,
    parameter int unsigned ScaleAddrW = 10,
    parameter int unsigned BiasAddrW = 9,
    parameter int unsigned SumAddrW = 9,
    parameter int unsigned CellClocks = 12,  // from the last unit that writes a cell to the first that may read it
    parameter int unsigned QuadW = $clog2(Rows / 4),  // derived
    parameter int unsigned LaneW = $clog2(Cols)  // derived
) (
    input logic clk_i,
    input logic rst_i,

    input  logic     job_valid_i,
    output logic     job_ready_o,
    input  vec_job_t job_i,

    input  logic        res_valid_i,
    output logic        res_ready_o,
    input  logic [15:0] res_group_i,
    input  logic [ 1:0] res_vector_i,
    input  logic [15:0] res_quad_i,
    input  logic        res_last_i,

    // Clock 0.
    output logic                  scale_en_o,
    output logic [ScaleAddrW-1:0] scale_addr_o,

    // Clock 2.
    output logic                    valid_o,
    output logic                    fresh_o,         // S starts at the bias
    output logic                    keep_o,          // S is kept
    output logic                    is_cell_o,       // the post-operation follows: which
    output logic                    is_i16_o,
    output logic                    is_i8_o,
    output logic                    is_logit_o,
    output logic                    last_output_o,   // the job's last unit with a post-operation
    output logic                    job_end_o,       // the job's last unit
    output way_e                    way_o,           // the job's
    output thread_e                 thread_o,
    output logic    [    QuadW-1:0] quad_o,
    output logic    [ SumAddrW-1:0] sum_addr_o,
    output logic    [BiasAddrW-1:0] bias_addr_o,
    output logic    [         15:0] target_o,        // activation unit (CELL, I8), cell unit (I16) or quad (LOGIT)
    output logic    [    LaneW-1:0] lane_o,          // first byte within it (CELL, I8)
    output logic                    second_valid_o,
    output logic    [ ActAddrW-1:0] second_o,
    output logic    [CellAddrW-1:0] cell_read_o,
    output logic    [CellAddrW-1:0] cell_write_o,
    output logic    [          3:0] shift_o,
    output logic    [          3:0] qh_o,
    output logic    [          6:0] i8_high_o,
    output logic                    i8_signed_o
);
  localparam logic [QuadW-1:0] LastQuad = '1;

  if (Rows < 16 || Rows != 4 << QuadW) begin : gen_check_rows
    $error("%m: Rows must be a power of two, at least 16");
  end
  if (Cols < 4 || Cols > Rows || Cols != 1 << LaneW) begin : gen_check_cols
    $error("%m: Cols must be a power of two, 4 to Rows");
  end

  // Jobs. The next one is taken over in the clock of the last result, so that there is no gap.
  vec_job_t next, job_q;
  logic next_valid, busy_q, take, load;

  small_fifo #(
      .Width($bits(vec_job_t)),
      .Depth(8)
  ) u_jobs (
      .clk_i,
      .rst_i,
      .push_valid_i(job_valid_i),
      .push_ready_o(job_ready_o),
      .push_data_i (job_i),
      .pop_valid_o (next_valid),
      .pop_ready_i (load),
      .pop_data_o  (next)
  );

  // Position within the job: what changes from group to group, and from vector to vector.
  logic vector_end, group_end, last_group_q;
  logic [ScaleAddrW-QuadW-1:0] scale_q;
  logic [ BiasAddrW-QuadW-1:0] bias_q;
  logic [SumAddrW-QuadW-1:0] sum_q, group_sum_q;
  logic [15:0] groups_left_q, target_q;
  logic [CellAddrW-1:0] cell_read_q, cell_write_q;
  logic cell_wait;
  logic [QuadW-1:0] quad;

  assign take = res_valid_i && res_ready_o;
  assign load = !busy_q || (take && res_last_i);
  assign quad = res_quad_i[QuadW-1:0];
  assign vector_end = quad == LastQuad;
  assign group_end = vector_end && res_vector_i == job_q.vectors_less_1;

  // I16 goes to cells, and logits have no address but their number.
  function automatic logic [15:0] first_target(input post_e post, input logic [ActAddrW-1:0] activation,
                                               input logic [CellAddrW-1:0] first_cell);
    unique case (post)
      PostI16:   return first_cell;
      PostLogit: return '0;
      default:   return activation;
    endcase
  endfunction

  always_ff @(posedge clk_i) begin
    if (rst_i) busy_q <= 1'b0;
    else if (load) busy_q <= next_valid;

    if (load) begin
      job_q <= next;
      scale_q <= next.scale_group[ScaleAddrW-QuadW-1:0];
      bias_q <= next.bias_group[BiasAddrW-QuadW-1:0];
      sum_q <= next.sum_group[SumAddrW-QuadW-1:0];
      group_sum_q <= next.sum_group[SumAddrW-QuadW-1:0];
      target_q <= first_target(next.post, next.destination, next.cell_destination);
      cell_read_q <= next.cell_source;
      cell_write_q <= next.cell_destination;
      groups_left_q <= next.row_groups;
      last_group_q <= next.row_groups == 16'd1;
    end else if (take && group_end) begin
      scale_q <= scale_q + 1'b1;
      bias_q <= bias_q + 1'b1;
      sum_q <= group_sum_q + 1'b1;
      group_sum_q <= group_sum_q + 1'b1;
      target_q <= first_target(job_q.post, job_q.destination, job_q.cell_destination);
      cell_read_q <= cell_read_q + 1'b1;
      cell_write_q <= cell_write_q + 1'b1;
      groups_left_q <= groups_left_q - 1'b1;
      last_group_q <= groups_left_q == 16'd2;
    end else if (take && vector_end) begin
      sum_q <= sum_q + job_q.row_groups[SumAddrW-QuadW-1:0];
      if (job_q.post != PostLogit) target_q <= target_q + job_q.destination_stride;
    end
  end

  cell_guard #(
      .Clocks(CellClocks)
  ) u_guard (
      .clk_i,
      .rst_i,
      .next_valid_i(next_valid),
      .next_i(next),
      .begin_i(load),
      .cell_taken_i(take && job_q.post == PostCell && job_q.last[res_vector_i]),
      .wait_o(cell_wait)
  );

  assign res_ready_o  = busy_q && !cell_wait;
  assign scale_en_o   = res_valid_i;  // taken or not
  assign scale_addr_o = {scale_q, quad};

  // Clock 1.
  post_e   post1_q;
  thread_e thread1_q;
  logic [3:0] shift1_q, qh1_q;
  logic [6:0] i8_high1_q;
  logic i8_signed1_q, job_outputs1_q, second_valid1_q;
  logic [ActAddrW-1:0] second1_q;
  logic valid1_q, fresh1_q, ended1_q, last_output1_q, job_end1_q;
  logic [QuadW-1:0] quad1_q;
  logic [15:0] group1_q, target1_q;
  logic [BiasAddrW-QuadW-1:0] bias1_q;
  logic [ SumAddrW-QuadW-1:0] sum1_q;
  logic [CellAddrW-1:0] cell_read1_q, cell_write1_q;
  logic later_vector;

  always_comb begin
    later_vector = 1'b0;
    for (int unsigned v = 1; v < MaxVectors; v++) later_vector |= v > 32'(res_vector_i) && job_q.last[v];
  end

  always_ff @(posedge clk_i) begin
    valid1_q <= take && !rst_i;
    post1_q <= job_q.post;
    thread1_q <= job_q.thread;
    shift1_q <= job_q.shift;
    qh1_q <= job_q.qh;
    i8_high1_q <= job_q.i8_high;
    i8_signed1_q <= job_q.i8_signed;
    job_outputs1_q <= job_q.last != '0;
    second_valid1_q <= job_q.second_valid;
    second1_q <= job_q.second;
    fresh1_q <= job_q.first[res_vector_i];
    ended1_q <= job_q.last[res_vector_i];
    last_output1_q <= last_group_q && vector_end && !later_vector;
    job_end1_q <= res_last_i;
    quad1_q <= quad;
    group1_q <= res_group_i;
    target1_q <= target_q;
    bias1_q <= bias_q;
    sum1_q <= sum_q;
    cell_read1_q <= cell_read_q;
    cell_write1_q <= cell_write_q;
  end

  // Number of the unit within the vector, and of its first byte, cell unit and so on within the destination.
  logic [15+QuadW:0] unit1;
  logic [17+QuadW:0] byte1;
  logic [15:0] offset1, cell_offset1;

  assign unit1 = {group1_q, quad1_q};
  assign byte1 = {unit1, 2'b00};
  assign cell_offset1 = 16'(unit1 >> LaneW);

  always_comb begin
    unique case (post1_q)
      PostI16: offset1 = 16'(unit1 >> (QuadW - 2));
      PostI8: offset1 = 16'(byte1 >> LaneW);
      PostLogit: offset1 = 16'(unit1);
      default: offset1 = cell_offset1;
    endcase
  end

  // A job that only keeps sums is done with them, whatever its post-operation.
  way_e way1;

  always_comb begin
    unique case (post1_q)
      PostI16: way1 = job_outputs1_q ? WayI16 : WayShort;
      PostCell, PostI8: way1 = job_outputs1_q ? WayLong : WayShort;
      default: way1 = WayShort;
    endcase
  end

  always_ff @(posedge clk_i) begin
    valid_o <= valid1_q && !rst_i;
    fresh_o <= fresh1_q;
    keep_o <= !ended1_q;
    is_cell_o <= ended1_q && post1_q == PostCell;
    is_i16_o <= ended1_q && post1_q == PostI16;
    is_i8_o <= ended1_q && post1_q == PostI8;
    is_logit_o <= ended1_q && post1_q == PostLogit;
    last_output_o <= last_output1_q && ended1_q;
    job_end_o <= job_end1_q;
    way_o <= way1;
    thread_o <= thread1_q;
    quad_o <= quad1_q;
    sum_addr_o <= {sum1_q, quad1_q};
    bias_addr_o <= {bias1_q, quad1_q};
    target_o <= target1_q + offset1;
    lane_o <= (post1_q == PostI8) ? byte1[LaneW-1:0] : unit1[LaneW-1:0];
    second_valid_o <= second_valid1_q;
    second_o <= second1_q + cell_offset1;
    cell_read_o <= cell_read1_q;
    cell_write_o <= cell_write1_q;
    shift_o <= shift1_q;
    qh_o <= qh1_q;
    i8_high_o <= i8_high1_q;
    i8_signed_o <= i8_signed1_q;
  end

  // Once a job has begun, these fields of it live in registers of their own.
  logic unused;
  assign unused = &{1'b0, res_quad_i[15:QuadW], job_q.row_groups, job_q.sum_group, job_q.scale_group, job_q.bias_group, job_q.cell_source};
endmodule
