// SPDX-License-Identifier: Apache-2.0
// The batch sequencer: encode thread and decode thread, the order of their segments, aux jobs, results (docs/batch.md).
module batch_sequencer
  import gharial_pkg::*;
  import sequencer_pkg::*;
  import seat_pkg::*;
  import thread_pkg::*;
#(
    parameter int unsigned CodeBytes = gharial_config_pkg::CodeBytes
) (
    input logic clk_i,
    input logic rst_i,

    input header_t header_i,

    // Words of the code space.
    input logic        load_valid_i,
    input logic [26:0] load_addr_i,
    input logic [31:0] load_data_i,

    // Batches: [0] encode, [1] decode.
    input  logic              batch_valid_i[2],
    output logic              batch_ready_o[2],
    input  batch_t            batch_i      [2],
    input  logic        [1:0] fetched_i    [2],  // by side
    output logic              done_valid_o [2],
    input  logic              done_ready_i [2],
    output batch_done_t       done_o       [2],

    // Segments.
    output logic            stream_valid_o,
    input  logic            stream_ready_i,
    output logic     [23:0] stream_tile_o,
    output logic     [15:0] stream_tiles_o,
    output logic            array_valid_o,
    input  logic            array_ready_i,
    output logic            finish_valid_o,
    input  logic            finish_ready_i,
    output segment_t        segment_o,
    input  logic            retire_valid_i,
    input  thread_e         retire_thread_i,

    // A tile could not be read.
    input logic        lost_i,
    input logic [63:0] lost_addr_i,

    // Batch aux.
    output logic                            aux_valid_o,
    input  logic                            aux_ready_i,
    output seat_aux_job_t                   aux_job_o,
    output logic          [Seats-1:0][15:0] aux_tokens_o,
    output seats_t                          aux_zeros_o,
    input  logic                            aux_done_i,
    input  logic                            aux_failed_i,
    input  logic          [     63:0]       aux_error_addr_i,

    // Rank unit.
    input  logic                  max_valid_i,
    output logic      [SeatW-1:0] max_seat_o,
    input  logic      [     15:0] max_class_i,
    output logic                  rank_valid_o,
    input  logic                  rank_ready_i,
    output rank_job_t             rank_job_o,
    input  logic                  rank_done_i,
    input  logic                  word_valid_i,
    output logic                  word_ready_o,
    input  logic      [     63:0] word_addr_i,
    input  logic      [     31:0] word_data_i,

    output logic             result_valid_o,
    input  logic             result_ready_i,
    output logic [     63:0] result_addr_o,
    output logic [     31:0] result_data_o,
    output logic [WorkW-1:0] result_work_o,

    output logic        waits_o,
    output logic        idle_o,
    output logic [31:0] instruction_o  // that a thread was last at, the decode thread's if it works
);
  localparam int unsigned E = 0;
  localparam int unsigned D = 1;
  localparam int unsigned InstrBytes = 32;
  localparam int unsigned Instrs = CodeBytes / InstrBytes;

  logic
      run_valid[2], run_ready[2], run_done[2], run_logits[2], code_req[2], code_grant[2], step_valid[2], step_ready[2];
  logic seg_valid[2], seg_ready[2], aux_valid[2], aux_waits[2], retire[2], aux_taken[2], aux_done[2], busy[2];
  seat_run_t run[2];
  seat_step_t step[2];
  fault_e run_fault[2];
  unit_e run_unit[2];
  logic [31:0] run_detail[2];
  logic [15:0] code_addr[2], number[2];
  cut_t seg[2];
  mark_t retired[2];
  seat_aux_job_t aux_job[2];

  // Code memory, an instruction a word: decode first.
  instr_t code_data;
  logic [15:0] code_place;
  assign code_grant[D] = 1'b1;
  assign code_grant[E] = !code_req[D];
  assign code_place = code_req[D] ? code_addr[D] : code_addr[E];
  loaded_memory #(
      .Width(8 * InstrBytes),
      .Words(Instrs)
  ) u_code (
      .clk_i,
      .load_valid_i,
      .load_addr_i,
      .load_data_i,
      .re_i(code_req[D] || code_req[E]),
      .raddr_i(code_place[$clog2(Instrs)-1:0]),
      .rdata_o(code_data)
  );

  // Aux unit: one job at a time, decode first; whose is next is decided while none is at work.
  logic aux_busy_q, aux_user_q;
  assign aux_job_o = aux_job[aux_user_q];
  always_ff @(posedge clk_i) begin
    if (!aux_busy_q) aux_user_q <= aux_valid[D];
    if (rst_i) begin
      aux_busy_q  <= 1'b0;
      aux_valid_o <= 1'b0;
    end else begin
      if (!aux_busy_q) aux_busy_q <= aux_valid[D] || aux_valid[E];
      else if (aux_done_i) aux_busy_q <= 1'b0;
      if (!aux_busy_q) aux_valid_o <= aux_valid[D] || aux_valid[E];
      else if (aux_ready_i) aux_valid_o <= 1'b0;
    end
  end

  for (genvar t = 0; t < 2; t++) begin : gen_thread
    seat_fetch u_fetch (
        .clk_i,
        .rst_i,
        .header_i,
        .run_valid_i(run_valid[t]),
        .run_ready_o(run_ready[t]),
        .run_i(run[t]),
        .code_req_o(code_req[t]),
        .code_addr_o(code_addr[t]),
        .code_grant_i(code_grant[t]),
        .code_data_i(code_data),
        .step_valid_o(step_valid[t]),
        .step_ready_i(step_ready[t]),
        .step_o(step[t])
    );

    assign retire[t] = retire_valid_i && retire_thread_i == thread_e'(t);
    assign aux_taken[t] = aux_valid_o && aux_ready_i && aux_user_q == 1'(t);
    assign aux_done[t] = aux_done_i && aux_user_q == 1'(t);
    assign run_unit[t] = (run_fault[t] == FaultNone) ? UnitNone : (run_fault[t] == FaultBusRead) ? UnitMemory : UnitSequencer;
    segment_cutter #(
        .Thread(thread_e'(t))
    ) u_cutter (
        .clk_i,
        .rst_i,
        .header_i,
        .step_valid_i(step_valid[t]),
        .step_ready_o(step_ready[t]),
        .step_i(step[t]),
        .fetched_i(fetched_i[t]),
        .retire_i(retire[t]),
        .seg_valid_o(seg_valid[t]),
        .seg_ready_i(seg_ready[t]),
        .seg_o(seg[t]),
        .retired_o(retired[t]),
        .aux_valid_o(aux_valid[t]),
        .aux_taken_i(aux_taken[t]),
        .aux_job_o(aux_job[t]),
        .aux_done_i(aux_done[t]),
        .lost_i,
        .lost_addr_i(lost_addr_i[31:0]),
        .aux_failed_i,
        .aux_detail_i(aux_error_addr_i[31:0]),
        .aux_waits_o(aux_waits[t]),
        .done_o(run_done[t]),
        .fault_o(run_fault[t]),
        .detail_o(run_detail[t]),
        .logits_o(run_logits[t]),
        .number_o(number[t])
    );
  end

  logic order_waits, order_idle, logits_free;
  segment_order u_order (
      .clk_i,
      .rst_i,
      .seg_valid_i(seg_valid),
      .seg_ready_o(seg_ready),
      .seg_i(seg),
      .retired_i(retired),
      .fetched_i,
      .busy_i(busy),
      .logits_free_i(logits_free),
      .stream_valid_o,
      .stream_ready_i,
      .stream_tile_o,
      .stream_tiles_o,
      .array_valid_o,
      .array_ready_i,
      .finish_valid_o,
      .finish_ready_i,
      .segment_o,
      .waits_o(order_waits),
      .idle_o(order_idle)
  );

  batch_encode u_encode (
      .clk_i,
      .rst_i,
      .batch_valid_i(batch_valid_i[E]),
      .batch_ready_o(batch_ready_o[E]),
      .batch_i(batch_i[E]),
      .run_valid_o(run_valid[E]),
      .run_ready_i(run_ready[E]),
      .run_o(run[E]),
      .run_done_i(run_done[E]),
      .run_fault_i(run_fault[E]),
      .run_unit_i(run_unit[E]),
      .run_detail_i(run_detail[E]),
      .done_valid_o(done_valid_o[E]),
      .done_ready_i(done_ready_i[E]),
      .done_o(done_o[E]),
      .busy_o(busy[E])
  );

  logic ranks_valid, ranks_ready, ranks_ends, ranks_idle;
  seats_t ranks_seats;
  batch_t ranks_batch;
  batch_done_t ranks_done;
  logic [Seats-1:0][7:0] ranks_counts;
  batch_decode u_decode (
      .clk_i,
      .rst_i,
      .blank_i(header_i.blank),
      .batch_valid_i(batch_valid_i[D]),
      .batch_ready_o(batch_ready_o[D]),
      .batch_i(batch_i[D]),
      .run_valid_o(run_valid[D]),
      .run_ready_i(run_ready[D]),
      .run_o(run[D]),
      .run_done_i(run_done[D]),
      .run_fault_i(run_fault[D]),
      .run_unit_i(run_unit[D]),
      .run_detail_i(run_detail[D]),
      .run_logits_i(run_logits[D]),
      .tokens_o(aux_tokens_o),
      .zeros_o(aux_zeros_o),
      .max_valid_i,
      .max_seat_o,
      .max_class_i,
      .rank_valid_o(ranks_valid),
      .rank_ready_i(ranks_ready),
      .rank_ends_o(ranks_ends),
      .rank_seats_o(ranks_seats),
      .rank_batch_o(ranks_batch),
      .rank_done_o(ranks_done),
      .rank_counts_o(ranks_counts),
      .rank_idle_i(ranks_idle),
      .busy_o(busy[D])
  );

  batch_results u_results (
      .clk_i,
      .rst_i,
      .rank_valid_i(ranks_valid),
      .rank_ready_o(ranks_ready),
      .rank_ends_i(ranks_ends),
      .rank_seats_i(ranks_seats),
      .rank_batch_i(ranks_batch),
      .rank_done_i(ranks_done),
      .rank_counts_i(ranks_counts),
      .rank_idle_o(ranks_idle),
      .logits_free_o(logits_free),
      .job_valid_o(rank_valid_o),
      .job_ready_i(rank_ready_i),
      .job_o(rank_job_o),
      .job_done_i(rank_done_i),
      .word_valid_i,
      .word_ready_o,
      .word_addr_i,
      .word_data_i,
      .result_valid_o,
      .result_ready_i,
      .result_addr_o,
      .result_data_o,
      .result_work_o,
      .done_valid_o(done_valid_o[D]),
      .done_ready_i(done_ready_i[D]),
      .done_o(done_o[D])
  );

  assign waits_o = order_waits || aux_waits[E] || aux_waits[D];
  assign idle_o = !busy[E] && !busy[D] && ranks_idle && order_idle;
  assign instruction_o = 32'(busy[D] ? number[D] : number[E]);

  logic unused;
  assign unused = &{1'b0, header_i, code_place, aux_error_addr_i, lost_addr_i, run_logits[E]};  // fields of other blocks, above the memory's size
endmodule
