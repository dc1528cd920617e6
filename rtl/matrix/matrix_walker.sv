// SPDX-License-Identifier: Apache-2.0
// Walks jobs: for each row group, each column tile, each vector one step, a tile being fetched once for all vectors. Every clock has a step, except where a
// group's results have no room yet, or a job of fewer than MinClocks is stretched to that. The next job waits here, so there is no gap between jobs.
module matrix_walker
  import gharial_pkg::mat_job_t;
  import gharial_pkg::ActAddrW;
#(
    parameter int unsigned MinClocks = 16,  // of a job, from its first step to the next job's; a power of two
    parameter int unsigned VectorW   = 2
) (
    input logic clk_i,
    input logic rst_i,

    // Jobs; groups and tiles at least 1.
    input  logic     job_valid_i,
    output logic     job_ready_o,
    input  mat_job_t job_i,

    // Result memory.
    input  logic        room_i,          // for all vectors of a group
    output logic        claim_o,         // a group starts: it takes claim_less_1 + 1 places
    output logic [ 1:0] claim_less_1_o,
    output logic        entry_o,         // a step that completes a sum, in the order of the results
    output logic [15:0] entry_group_o,
    output logic [ 1:0] entry_vector_o,
    output logic        entry_last_o,    // of the job

    // Steps: addresses, and what the accumulators need to know of the step. A clock after the counters and the above.
    output logic                weight_en_o,
    output logic [        23:0] weight_addr_o,
    output logic                act_en_o,
    output logic [ActAddrW-1:0] act_addr_o,
    output logic                step_o,
    output logic                step_first_o,
    output logic                step_last_o,
    output logic [ VectorW-1:0] step_vector_o,

    // Counters.
    output logic active_o,
    output logic blocked_o
);
  localparam int unsigned AgeW = $clog2(MinClocks);

  // Next job.
  logic next_valid_q;
  mat_job_t next_q;
  logic next_one_tile_q, next_one_group_q;
  logic load;

  always_ff @(posedge clk_i) begin
    if (job_valid_i && job_ready_o) begin
      next_q <= job_i;
      next_one_tile_q <= job_i.col_tiles == 16'd1;
      next_one_group_q <= job_i.row_groups == 16'd1;
    end
    if (rst_i) begin
      next_valid_q <= 1'b0;
    end else if (job_valid_i && job_ready_o) begin
      next_valid_q <= 1'b1;
    end else if (load) begin
      next_valid_q <= 1'b0;
    end
  end
  assign job_ready_o = !next_valid_q;

  // Present job: what it repeats, and where it is. That something is the last one is known beforehand, by registers of its own: every clock's step,
  // and through that all that is here, depends on it.
  logic busy_q;  // there is one
  logic walked_q;  // all its steps are done, it only waits for its time to pass
  logic [AgeW-1:0] age_q;  // clocks since its first step, up to the largest value
  logic aged_q;  // it has that
  logic [15:0] tiles_less_1_q;
  logic one_tile_q, one_vector_q;
  logic [ActAddrW-1:0] source_q, stride_q;
  logic [1:0] vectors_less_1_q;

  logic [1:0] vector_q;
  logic first_vector_q, last_vector_q;
  logic first_tile_q, last_tile_q, last_group_q;
  logic start_q, final_q;  // the first step of a group, the last one of the job
  logic [15:0] tiles_left_q;  // in the group, after this one
  logic [15:0] groups_left_q;  // after this one
  logic [15:0] group_q;
  logic [23:0] tile_q;
  logic [ActAddrW-1:0] act_q;  // of this step
  logic [ActAddrW-1:0] act_tile_q;  // of vector 0

  // The next job takes over with the last step, without asking for room: where that step starts a group it waits for the clock after.
  logic step, last_step, finish;
  assign step = busy_q && !walked_q && (room_i || !start_q);
  assign last_step = step && final_q;
  assign finish = ((final_q && !start_q) || walked_q) && aged_q;
  assign load = next_valid_q && (!busy_q || finish);

  always_ff @(posedge clk_i) begin
    if (step) begin
      start_q <= last_vector_q && last_tile_q;
      if (!last_vector_q) begin
        final_q <= vector_q + 1'b1 == vectors_less_1_q && last_tile_q && last_group_q;
        vector_q <= vector_q + 1'b1;
        first_vector_q <= 1'b0;
        last_vector_q <= vector_q + 1'b1 == vectors_less_1_q;
        act_q <= act_q + stride_q;
      end else begin
        vector_q <= '0;
        first_vector_q <= 1'b1;
        last_vector_q <= one_vector_q;
        tile_q <= tile_q + 1'b1;
        if (!last_tile_q) begin
          first_tile_q <= 1'b0;
          last_tile_q <= tiles_left_q == 16'd1;
          final_q <= one_vector_q && tiles_left_q == 16'd1 && last_group_q;
          tiles_left_q <= tiles_left_q - 1'b1;
          act_tile_q <= act_tile_q + 1'b1;
          act_q <= act_tile_q + 1'b1;
        end else begin
          first_tile_q <= 1'b1;
          last_tile_q <= one_tile_q;
          last_group_q <= groups_left_q == 16'd1;
          final_q <= one_vector_q && one_tile_q && groups_left_q == 16'd1;
          tiles_left_q <= tiles_less_1_q;
          groups_left_q <= groups_left_q - 1'b1;
          group_q <= group_q + 1'b1;
          act_tile_q <= source_q;
          act_q <= source_q;
        end
      end
    end
    if (!aged_q && (age_q != '0 || step)) begin
      age_q  <= age_q + 1'b1;
      aged_q <= age_q == AgeW'(MinClocks - 2);
    end
    if (last_step) walked_q <= 1'b1;
    if (finish) busy_q <= 1'b0;
    if (load) begin
      busy_q <= 1'b1;
      walked_q <= 1'b0;
      age_q <= '0;
      aged_q <= 1'b0;
      tiles_less_1_q <= next_q.col_tiles - 1'b1;
      one_tile_q <= next_one_tile_q;
      one_vector_q <= next_q.vectors_less_1 == '0;
      start_q <= 1'b1;
      final_q <= next_q.vectors_less_1 == '0 && next_one_tile_q && next_one_group_q;
      source_q <= next_q.source;
      stride_q <= next_q.source_stride;
      vectors_less_1_q <= next_q.vectors_less_1;
      vector_q <= '0;
      first_vector_q <= 1'b1;
      last_vector_q <= next_q.vectors_less_1 == '0;
      first_tile_q <= 1'b1;
      last_tile_q <= next_one_tile_q;
      last_group_q <= next_one_group_q;
      tiles_left_q <= next_q.col_tiles - 1'b1;
      groups_left_q <= next_q.row_groups - 1'b1;
      group_q <= '0;
      tile_q <= next_q.tile;
      act_q <= next_q.source;
      act_tile_q <= next_q.source;
    end
    if (rst_i) busy_q <= 1'b0;
  end

  assign claim_o = step && start_q;
  assign claim_less_1_o = vectors_less_1_q;
  assign entry_o = step && last_tile_q;
  assign entry_group_o = group_q;
  assign entry_vector_o = vector_q;
  assign entry_last_o = last_group_q && last_vector_q;
  assign active_o = step;
  assign blocked_o = busy_q && !step;

  always_ff @(posedge clk_i) begin
    weight_en_o   <= step && first_vector_q && !rst_i;
    act_en_o      <= step && !rst_i;
    step_o        <= step && !rst_i;
    weight_addr_o <= tile_q;
    act_addr_o    <= act_q;
    step_first_o  <= first_tile_q;
    step_last_o   <= last_tile_q;
    step_vector_o <= vector_q[VectorW-1:0];
  end

`ifdef FORMAL
  always_ff @(posedge clk_i) begin
    if (!rst_i && job_valid_i && job_ready_o) begin
      assert (job_i.row_groups != '0 && job_i.col_tiles != '0);
      assert (32'(job_i.vectors_less_1) < 1 << VectorW);
    end
  end
`endif  // FORMAL
endmodule
