// SPDX-License-Identifier: Apache-2.0
// Matrix unit: Rows x Cols products a clock between a weight tile and an activation unit, summed over the columns and, per vector, over a row group's column tiles.
// Contract and latency: docs/blocks/matrix_unit.md.
module matrix_unit
  import gharial_pkg::mat_job_t;
  import gharial_pkg::ActAddrW;
#(
    parameter int unsigned Rows = gharial_config_pkg::Rows,  // a power of two, at least 8
    parameter int unsigned Cols = gharial_config_pkg::Cols,  // a power of two, at least 2
    parameter int unsigned MaxVectors = gharial_pkg::MaxVectors,  // 2 to 4
    parameter string Multiplier = "GENERIC"  // "ECP5": two rows share one MULT18X18D
) (
    input logic clk_i,
    input logic rst_i,

    // Jobs.
    input  logic     job_valid_i,
    output logic     job_ready_o,
    input  mat_job_t job_i,

    // Weight memory; data three clocks after weight_en_o, kept until the next.
    output logic                   weight_en_o,
    output logic [           23:0] weight_addr_o,  // tile
    input  logic [Rows*Cols*8-1:0] weight_data_i,  // byte r * Cols + c: row r, column c

    // Activation memory, data after two clocks.
    output logic                act_en_o,
    output logic [ActAddrW-1:0] act_addr_o,  // activation unit
    input  logic [  Cols*8-1:0] act_data_i,

    // Results: by row group, vector, unit of four rows.
    output logic               res_valid_o,
    input  logic               res_ready_i,
    output logic signed [31:0] res_sums_o  [4],
    output logic        [15:0] res_group_o,
    output logic        [ 1:0] res_vector_o,
    output logic        [15:0] res_quad_o,
    output logic               res_last_o,       // of the job

    // Counters.
    output logic active_o,  // a tile was issued in this clock
    output logic blocked_o  // there is a job, but no step
);
  localparam int unsigned VectorW = $clog2(MaxVectors);
  localparam int unsigned ResultWords = 16;  // sums of all rows that may wait to be taken
  localparam int unsigned Delay = 3 + 5 + $clog2(Cols);  // memory, multiplier, adder tree

  if (Rows < 8 || 1 << $clog2(Rows) != Rows) begin : gen_check_rows
    $error("%m: Rows must be a power of two, at least 8");
  end
  if (Cols < 2 || 1 << $clog2(Cols) != Cols) begin : gen_check_cols
    $error("%m: Cols must be a power of two, at least 2");
  end
  if (MaxVectors < 2 || MaxVectors > 4) begin : gen_check_vectors
    $error("%m: MaxVectors must be 2 to 4");
  end

  typedef struct packed {
    logic valid;
    logic first;
    logic last;
    logic [VectorW-1:0] vector;
  } step_t;
  step_t step, due_q[Delay];

  logic room, claim, entry, entry_last;
  logic [1:0] claim_less_1, entry_vector;
  logic [15:0] entry_group;

  matrix_walker #(
      .VectorW(VectorW)
  ) u_walker (
      .clk_i,
      .rst_i,
      .job_valid_i,
      .job_ready_o,
      .job_i,
      .room_i        (room),
      .claim_o       (claim),
      .claim_less_1_o(claim_less_1),
      .entry_o       (entry),
      .entry_group_o (entry_group),
      .entry_vector_o(entry_vector),
      .entry_last_o  (entry_last),
      .weight_en_o,
      .weight_addr_o,
      .act_en_o,
      .act_addr_o,
      .step_o        (step.valid),
      .step_first_o  (step.first),
      .step_last_o   (step.last),
      .step_vector_o (step.vector),
      .active_o,
      .blocked_o
  );

  always_ff @(posedge clk_i) begin
    due_q[0] <= step;
    for (int i = 1; i < Delay; i++) due_q[i] <= due_q[i-1];
    if (rst_i) begin
      for (int i = 0; i < Delay; i++) due_q[i].valid <= 1'b0;
    end
  end

  // One tile is held while the vectors pass, each with its own activations.
  logic signed [31:0] rsums[Rows];
  logic [Rows/4-1:0] taken;

  for (genvar l = 0; l < Rows / 4; l++) begin : gen_lane
    // Activations wait for the weights here: each lane has its own, as one register would have to reach all multipliers.
    (* keep *) logic [Cols*8-1:0] acts_q;
    logic signed [7:0] weights[4][Cols];
    logic signed [7:0] acts[Cols];
    always_ff @(posedge clk_i) acts_q <= act_data_i;
    for (genvar c = 0; c < Cols; c++) begin : gen_act
      assign acts[c] = signed'(acts_q[8*c+:8]);
    end
    for (genvar r = 0; r < 4; r++) begin : gen_row
      for (genvar c = 0; c < Cols; c++) begin : gen_col
        assign weights[r][c] = signed'(weight_data_i[8*((4*l+r)*Cols+c)+:8]);
      end
    end

    matrix_lane #(
        .Cols(Cols),
        .MaxVectors(MaxVectors),
        .ResultWords(ResultWords),
        .Multiplier(Multiplier)
    ) u_lane (
        .clk_i,
        .rst_i,
        .weights_i    (weights),
        .acts_i       (acts),
        .step_i       (due_q[Delay-3].valid),
        .step_first_i (due_q[Delay-3].first),
        .step_last_i  (due_q[Delay-3].last),
        .step_vector_i(due_q[Delay-3].vector),
        .taken_i      (taken[l]),
        .rsums_o      (rsums[4*l:4*l+3])
    );
  end

  matrix_drain #(
      .Rows(Rows),
      .MaxVectors(MaxVectors),
      .Words(ResultWords)
  ) u_drain (
      .clk_i,
      .rst_i,
      .room_o        (room),
      .claim_i       (claim),
      .claim_less_1_i(claim_less_1),
      .entry_i       (entry),
      .entry_group_i (entry_group),
      .entry_vector_i(entry_vector),
      .entry_last_i  (entry_last),
      .write_i       (due_q[Delay-1].valid && due_q[Delay-1].last),
      .rsums_i       (rsums),
      .taken_o       (taken),
      .res_valid_o,
      .res_ready_i,
      .res_sums_o,
      .res_group_o,
      .res_vector_o,
      .res_quad_o,
      .res_last_o
  );
endmodule
