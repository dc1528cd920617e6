// SPDX-License-Identifier: Apache-2.0
// Hands the jobs of both threads to matrix and vector unit, each job to both at once. The decode thread goes first: its jobs are short and
// a token waits for them.
module issue_arbiter
  import gharial_pkg::*;
(
    input  logic     encode_valid_i,
    output logic     encode_ready_o,
    input  mat_job_t encode_mat_i,
    input  vec_job_t encode_vec_i,

    input  logic     decode_valid_i,
    output logic     decode_ready_o,
    input  mat_job_t decode_mat_i,
    input  vec_job_t decode_vec_i,

    output logic     mat_valid_o,
    input  logic     mat_ready_i,
    output mat_job_t mat_job_o,
    output logic     vec_valid_o,
    input  logic     vec_ready_i,
    output vec_job_t vec_job_o
);
  logic any, both;
  assign any = encode_valid_i || decode_valid_i;
  assign both = mat_ready_i && vec_ready_i;
  assign mat_valid_o = any && vec_ready_i;
  assign vec_valid_o = any && mat_ready_i;
  assign mat_job_o = decode_valid_i ? decode_mat_i : encode_mat_i;
  assign vec_job_o = decode_valid_i ? decode_vec_i : encode_vec_i;
  assign decode_ready_o = both;
  assign encode_ready_o = both && !decode_valid_i;
endmodule
