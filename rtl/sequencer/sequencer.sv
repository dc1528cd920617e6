// SPDX-License-Identifier: Apache-2.0
// The sequencer: E stage and D stage with a thread each, one code memory port, one issue stage (docs/blocks/sequencer.md).
module sequencer
  import gharial_pkg::*;
  import sequencer_pkg::*;
#(
    parameter int unsigned Rows = gharial_config_pkg::Rows,
    parameter int unsigned Cols = gharial_config_pkg::Cols,
    parameter int unsigned ScratchUnits = gharial_config_pkg::ScratchUnits
) (
    input logic clk_i,
    input logic rst_i,

    input  header_t header_i,
    input  logic    entry_valid_i,
    output logic    entry_ready_o,
    input  entry_t  entry_i,
    output logic    features_free_o,

    // Code memory; data two clocks after code_en_o.
    output logic        code_en_o,
    output logic [15:0] code_addr_o,
    input  logic [31:0] code_data_i,

    // Zeroing of slots: E stage, D stage.
    output logic                 zero_valid_o[2],
    output logic [ ActAddrW-1:0] zero_act_o  [2],
    output logic [CellAddrW-1:0] zero_cell_o [2],
    input  logic                 zero_done_i [2],

    // Jobs.
    output logic     mat_valid_o,
    input  logic     mat_ready_i,
    output mat_job_t mat_job_o,
    output logic     vec_valid_o,
    input  logic     vec_ready_i,
    output vec_job_t vec_job_o,
    input  logic     retire_valid_i,
    input  thread_e  retire_thread_i,
    output logic     aux_valid_o,
    input  logic     aux_ready_i,
    output aux_job_t aux_job_o,
    input  logic     aux_done_i,

    // Top-k unit.
    input  logic               max_valid_i,
    input  logic        [15:0] max_class_i,
    input  logic signed [15:0] max_logit_i,
    output logic               scan_valid_o,
    input  logic               scan_ready_i,
    output logic               scan_rank_o,
    output logic               scan_fuzzy_o,
    output logic        [15:0] scan_temperature_o,
    input  logic               scan_done_i,
    input  logic signed [31:0] lse_i,
    output logic               rank_pop_o,
    input  logic        [15:0] rank_class_i,
    input  logic signed [15:0] rank_logit_i,
    output logic               class_re_o,
    output logic        [15:0] class_o,
    input  logic signed [15:0] class_logit_i,

    // Results and ends.
    output logic               result_valid_o,
    input  logic               result_ready_i,
    output logic        [63:0] result_addr_o,
    output logic        [31:0] result_data_o,
    output logic               done_valid_o,
    input  logic               done_ready_i,
    output entry_done_t        done_o,

    output logic        waits_o,       // a thread has an instruction that waits
    output logic        idle_o,
    output logic [31:0] instruction_o  // that a thread was last at, the D stage's if it works
);
  localparam int unsigned E = 0;
  localparam int unsigned D = 1;

  logic run_valid[2], run_ready[2], run_done[2], code_req[2], code_grant[2], step_valid[2], step_ready[2], waiting[2];
  logic job_valid[2], job_ready[2], aux_valid[2], aux_ready[2], retire[2], aux_done[2];
  run_t run[2];
  step_t step[2];
  fault_e run_fault[2];
  logic [31:0] run_detail[2];
  logic [15:0] code_addr[2];
  mat_job_t mat_job[2];
  vec_job_t vec_job[2];
  aux_job_t aux_job[2];

  // Code memory: D first.
  assign code_grant[D] = 1'b1;
  assign code_grant[E] = !code_req[D];
  assign code_en_o = code_req[D] || code_req[E];
  assign code_addr_o = code_req[D] ? code_addr[D] : code_addr[E];

  // Aux unit: D first; it has one job at a time, whose end is its thread's.
  logic aux_user_q;
  assign aux_valid_o = aux_valid[D] || aux_valid[E];
  assign aux_job_o = aux_valid[D] ? aux_job[D] : aux_job[E];
  assign aux_ready[D] = aux_ready_i;
  assign aux_ready[E] = aux_ready_i && !aux_valid[D];
  always_ff @(posedge clk_i) if (aux_valid_o && aux_ready_i) aux_user_q <= aux_valid[D];

  for (genvar t = 0; t < 2; t++) begin : gen_thread
    thread_fetch #(
        .Rows(Rows),
        .Cols(Cols)
    ) u_fetch (
        .clk_i,
        .rst_i,
        .header_i,
        .run_valid_i(run_valid[t]),
        .run_ready_o(run_ready[t]),
        .run_i(run[t]),
        .code_req_o(code_req[t]),
        .code_addr_o(code_addr[t]),
        .code_grant_i(code_grant[t]),
        .code_data_i,
        .step_valid_o(step_valid[t]),
        .step_ready_i(step_ready[t]),
        .step_o(step[t])
    );

    assign retire[t]   = retire_valid_i && retire_thread_i == thread_e'(t);
    assign aux_done[t] = aux_done_i && aux_user_q == 1'(t);
    thread_issue #(
        .Thread(thread_e'(t))
    ) u_issue (
        .clk_i,
        .rst_i,
        .step_valid_i(step_valid[t]),
        .step_ready_o(step_ready[t]),
        .step_i(step[t]),
        .waiting_o(waiting[t]),
        .done_o(run_done[t]),
        .fault_o(run_fault[t]),
        .detail_o(run_detail[t]),
        .job_valid_o(job_valid[t]),
        .job_ready_i(job_ready[t]),
        .mat_job_o(mat_job[t]),
        .vec_job_o(vec_job[t]),
        .retire_i(retire[t]),
        .aux_valid_o(aux_valid[t]),
        .aux_ready_i(aux_ready[t]),
        .aux_job_o(aux_job[t]),
        .aux_done_i(aux_done[t])
    );
  end

  issue_arbiter u_arbiter (
      .encode_valid_i(job_valid[E]),
      .encode_ready_o(job_ready[E]),
      .encode_mat_i  (mat_job[E]),
      .encode_vec_i  (vec_job[E]),
      .decode_valid_i(job_valid[D]),
      .decode_ready_o(job_ready[D]),
      .decode_mat_i  (mat_job[D]),
      .decode_vec_i  (vec_job[D]),
      .mat_valid_o,
      .mat_ready_i,
      .mat_job_o,
      .vec_valid_o,
      .vec_ready_i,
      .vec_job_o
  );

  logic passed_valid, passed_ready, decode_busy, encode_waits, encode_idle;
  entry_t passed, decode_entry;
  encode_control u_encode (
      .clk_i,
      .rst_i,
      .header_i,
      .scratch_bank_units_i(16'(ScratchUnits)),
      .entry_valid_i,
      .entry_ready_o,
      .entry_i,
      .zero_valid_o(zero_valid_o[E]),
      .zero_act_o(zero_act_o[E]),
      .zero_cell_o(zero_cell_o[E]),
      .zero_done_i(zero_done_i[E]),
      .run_valid_o(run_valid[E]),
      .run_ready_i(run_ready[E]),
      .run_o(run[E]),
      .run_done_i(run_done[E]),
      .run_fault_i(run_fault[E]),
      .run_detail_i(run_detail[E]),
      .passed_valid_o(passed_valid),
      .passed_ready_i(passed_ready),
      .passed_o(passed),
      .busy_i(decode_busy),
      .busy_entry_i(decode_entry),
      .features_free_o,
      .waiting_o(encode_waits),
      .idle_o(encode_idle)
  );

  decode_control u_decode (
      .clk_i,
      .rst_i,
      .header_i,
      .entry_valid_i(passed_valid),
      .entry_ready_o(passed_ready),
      .entry_i(passed),
      .busy_o(decode_busy),
      .busy_entry_o(decode_entry),
      .zero_valid_o(zero_valid_o[D]),
      .zero_act_o(zero_act_o[D]),
      .zero_cell_o(zero_cell_o[D]),
      .zero_done_i(zero_done_i[D]),
      .run_valid_o(run_valid[D]),
      .run_ready_i(run_ready[D]),
      .run_o(run[D]),
      .run_done_i(run_done[D]),
      .run_fault_i(run_fault[D]),
      .run_detail_i(run_detail[D]),
      .max_valid_i,
      .max_class_i,
      .max_logit_i,
      .scan_valid_o,
      .scan_ready_i,
      .scan_rank_o,
      .scan_fuzzy_o,
      .scan_temperature_o,
      .scan_done_i,
      .lse_i,
      .rank_pop_o,
      .rank_class_i,
      .rank_logit_i,
      .class_re_o,
      .class_o,
      .class_logit_i,
      .result_valid_o,
      .result_ready_i,
      .result_addr_o,
      .result_data_o,
      .done_valid_o,
      .done_ready_i,
      .done_o
  );

  assign waits_o = waiting[E] || waiting[D] || encode_waits;
  assign idle_o = encode_idle && !decode_busy;
  assign instruction_o = decode_busy ? 32'(step[D].number) : 32'(step[E].number);
endmodule
