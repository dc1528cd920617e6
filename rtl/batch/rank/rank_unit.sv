// SPDX-License-Identifier: Apache-2.0
// Logits of all seats, their maxima as they come, and on request a seat's result: log-sum-exp, the largest k, named or all logits, as words for
// the device memory. Contract: docs/batch.md.
module rank_unit
  import seat_pkg::*;
#(
    parameter int unsigned Lanes = gharial_config_pkg::Lanes,
    parameter int unsigned RankLanes = gharial_config_pkg::RankLanes,
    parameter int unsigned MaxClasses = gharial_config_pkg::MaxClasses
) (
    input logic clk_i,
    input logic rst_i,

    // Tables: word address within the table space.
    input logic        load_valid_i,
    input logic [15:0] load_addr_i,
    input logic [31:0] load_data_i,

    // Of the program.
    input logic [15:0] classes_i,
    input logic [ 3:0] logit_bits_i,

    // From the finish unit.
    input logic                    logit_valid_i,
    input logic        [SeatW-1:0] logit_seat_i,
    input logic        [     15:0] logit_slice_i,
    input logic signed [     15:0] logit_data_i [4*Lanes],
    input logic                    logit_last_i,

    // The largest logits.
    output logic                    max_valid_o,
    input  logic        [SeatW-1:0] max_seat_i,
    output logic        [     15:0] max_class_o,
    output logic signed [     15:0] max_logit_o,

    // Results.
    input  logic             job_valid_i,
    output logic             job_ready_o,
    input  rank_job_t        job_i,
    output logic             job_done_o,
    output logic             result_valid_o,
    input  logic             result_ready_i,
    output logic      [63:0] result_addr_o,
    output logic      [31:0] result_data_o
);
  localparam int unsigned Places = 33;  // most of k

  rank_job_t job;
  logic scanned, read_valid;
  logic [15:0] read_chunk, best_class, rank_class;
  logic [RankLanes-1:0] read_there;
  logic signed [15:0] read_logit[RankLanes];
  logic signed [15:0] best_logit, rank_logit;
  logic signed [15:0] named[4];
  logic signed [31:0] lse;
  logic rank_pop, scan_re, write_re;
  logic [15:0] scan_chunk, write_chunk;

  seat_maximum #(
      .Seats(Seats),
      .WordLanes(4 * Lanes)
  ) u_maximum (
      .clk_i,
      .rst_i,
      .classes_i,
      .logit_valid_i,
      .logit_seat_i,
      .logit_slice_i,
      .logit_data_i,
      .logit_last_i,
      .max_valid_o,
      .max_seat_i,
      .max_class_o,
      .max_logit_o,
      .job_seat_i (job.seat),
      .job_class_o(best_class),
      .job_logit_o(best_logit)
  );

  // The writer reads when the scan is through.
  seat_logits #(
      .Seats(Seats),
      .WordLanes(4 * Lanes),
      .RankLanes(RankLanes),
      .MaxClasses(MaxClasses)
  ) u_logits (
      .clk_i,
      .rst_i,
      .classes_i,
      .logit_valid_i,
      .logit_seat_i,
      .logit_slice_i,
      .logit_data_i,
      .rseat_i (job.seat),
      .re_i    (scan_re || write_re),
      .rchunk_i(scan_re ? scan_chunk : write_chunk),
      .valid_o (read_valid),
      .chunk_o (read_chunk),
      .there_o (read_there),
      .logit_o (read_logit)
  );

  rank_scan #(
      .RankLanes(RankLanes),
      .MaxClasses(MaxClasses),
      .Places(Places)
  ) u_scan (
      .clk_i,
      .rst_i,
      .load_valid_i,
      .load_addr_i,
      .load_data_i,
      .classes_i,
      .logit_bits_i,
      .job_valid_i,
      .job_ready_o,
      .job_i,
      .job_o(job),
      .scanned_o(scanned),
      .written_i(job_done_o),
      .max_i(best_logit),
      .re_o(scan_re),
      .rchunk_o(scan_chunk),
      .valid_i(read_valid),
      .chunk_i(read_chunk),
      .there_i(read_there),
      .logit_i(read_logit),
      .lse_o(lse),
      .named_o(named),
      .rank_pop_i(rank_pop),
      .rank_class_o(rank_class),
      .rank_logit_o(rank_logit)
  );

  result_writer #(
      .RankLanes(RankLanes)
  ) u_writer (
      .clk_i,
      .rst_i,
      .start_i(scanned),
      .job_i(job),
      .classes_i,
      .done_o(job_done_o),
      .lse_i(lse),
      .max_class_i(best_class),
      .max_logit_i(best_logit),
      .named_i(named),
      .rank_pop_o(rank_pop),
      .rank_class_i(rank_class),
      .rank_logit_i(rank_logit),
      .re_o(write_re),
      .rchunk_o(write_chunk),
      .valid_i(read_valid),
      .logit_i(read_logit),
      .valid_o(result_valid_o),
      .ready_i(result_ready_i),
      .address_o(result_addr_o),
      .data_o(result_data_o)
  );
endmodule
