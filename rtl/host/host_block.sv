// SPDX-License-Identifier: Apache-2.0
// The host block: registers, rings, commands, state, and the AXI4 master (docs/architecture.md). What computes is behind entry_o and the memory ports.
module host_block
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
#(
    parameter logic [63:0] MemBytes = 64'(WindowBytes)
) (
    input logic clk_i,
    input logic rst_i,

    // Registers.
    input  logic        s_axil_awvalid_i,
    output logic        s_axil_awready_o,
    input  logic [ 7:0] s_axil_awaddr_i,
    input  logic [ 2:0] s_axil_awprot_i,
    input  logic        s_axil_wvalid_i,
    output logic        s_axil_wready_o,
    input  logic [31:0] s_axil_wdata_i,
    input  logic [ 3:0] s_axil_wstrb_i,
    output logic        s_axil_bvalid_o,
    input  logic        s_axil_bready_i,
    output logic [ 1:0] s_axil_bresp_o,
    input  logic        s_axil_arvalid_i,
    output logic        s_axil_arready_o,
    input  logic [ 7:0] s_axil_araddr_i,
    input  logic [ 2:0] s_axil_arprot_i,
    output logic        s_axil_rvalid_o,
    input  logic        s_axil_rready_i,
    output logic [31:0] s_axil_rdata_o,
    output logic [ 1:0] s_axil_rresp_o,
    output logic        irq_o,
    output logic [31:0] completions_o,
    output logic        halted_o,

    // Device memory.
    output logic        m_axi_arvalid_o,
    input  logic        m_axi_arready_i,
    output logic [63:0] m_axi_araddr_o,
    output logic [ 7:0] m_axi_arlen_o,
    input  logic        m_axi_rvalid_i,
    output logic        m_axi_rready_o,
    input  logic [31:0] m_axi_rdata_i,
    input  logic [ 1:0] m_axi_rresp_i,
    input  logic        m_axi_rlast_i,
    output logic        m_axi_awvalid_o,
    input  logic        m_axi_awready_i,
    output logic [63:0] m_axi_awaddr_o,
    output logic        m_axi_wvalid_o,
    input  logic        m_axi_wready_i,
    output logic [31:0] m_axi_wdata_o,
    input  logic        m_axi_bvalid_i,
    output logic        m_axi_bready_o,
    input  logic [ 1:0] m_axi_bresp_i,

    // The engine.
    output logic                        engine_reset_o,
    output header_t                     header_o,
    output logic                        load_valid_o,
    output space_e                      load_space_o,
    output logic        [         26:0] load_addr_o,
    output logic        [         31:0] load_data_o,
    output logic                        entry_valid_o,
    input  logic                        entry_ready_i,
    output entry_t                      entry_o,
    input  logic                        features_free_i,
    input  logic                        result_valid_i,
    output logic                        result_ready_o,
    input  logic        [         63:0] result_addr_i,
    input  logic        [         31:0] result_data_i,
    input  logic                        done_valid_i,
    output logic                        done_ready_o,
    input  entry_done_t                 done_i,
    input  logic                        zero_valid_i   [2],
    input  logic        [ ActAddrW-1:0] zero_act_i     [2],
    input  logic        [CellAddrW-1:0] zero_cell_i    [2],
    output logic                        zero_done_o    [2],
    input  logic                        matrix_active_i,
    input  logic                        matrix_blocked_i,
    input  logic                        thread_waits_i,
    input  logic                        threads_idle_i,
    input  logic        [         31:0] instruction_i,   // the oldest thread's, for the watchdog

    // State.
    output logic                 act_re_o,
    input  logic                 act_re_ready_i,
    output logic [ ActAddrW-1:0] act_raddr_o,
    input  logic [   8*Cols-1:0] act_rdata_i,
    output logic                 act_we_o,
    input  logic                 act_ready_i,
    output logic [ ActAddrW-1:0] act_waddr_o,
    output logic [   8*Cols-1:0] act_wdata_o,
    output logic                 cell_re_o,
    input  logic                 cell_re_ready_i,
    output logic [CellAddrW-1:0] cell_raddr_o,
    input  logic [   4*Rows-1:0] cell_rdata_i,
    output logic                 cell_we_o,
    input  logic                 cell_ready_i,
    output logic [CellAddrW-1:0] cell_waddr_o,
    output logic [   4*Rows-1:0] cell_wdata_o
);
  // Registers.
  logic run, enabled, soft_request, latch, halt, front_halt, completer_halt, watchdog_halt, completion_irq;
  logic program_valid, started, hold, purge, drop_pending, reset, stage_reset;
  logic [63:0] command_base, completion_base, clock, latched[7];
  logic [4:0] command_log2, completion_log2;
  logic [31:0] command_tail, completion_head, command_head, completion_tail, watchdog, program_id, halt_tag, oldest_tag;
  logic [15:0] enc_slots, pred_slots;
  failure_t halt_failure, front_failure, completer_failure;
  logic front_busy, front_pending, completer_empty;

  registers #(
      .MemBytes(MemBytes)
  ) u_registers (
      .clk_i,
      .rst_i,
      .s_axil_awvalid_i,
      .s_axil_awready_o,
      .s_axil_awaddr_i,
      .s_axil_awprot_i,
      .s_axil_wvalid_i,
      .s_axil_wready_o,
      .s_axil_wdata_i,
      .s_axil_wstrb_i,
      .s_axil_bvalid_o,
      .s_axil_bready_i,
      .s_axil_bresp_o,
      .s_axil_arvalid_i,
      .s_axil_arready_o,
      .s_axil_araddr_i,
      .s_axil_arprot_i,
      .s_axil_rvalid_o,
      .s_axil_rready_i,
      .s_axil_rdata_o,
      .s_axil_rresp_o,
      .clear_i(reset),
      .halt_i(halt),
      .halt_failure_i(halt_failure),
      .halt_tag_i(halt_tag),
      .completion_irq_i(completion_irq),
      .busy_i(front_busy || !completer_empty),
      .program_i(program_valid),
      .program_id_i(program_id),
      .enc_slots_i(enc_slots),
      .pred_slots_i(pred_slots),
      .command_head_i(command_head),
      .completion_tail_i(completion_tail),
      .counter_i(latched),
      .run_o(run),
      .enabled_o(enabled),
      .halted_o,
      .soft_reset_o(soft_request),
      .latch_o(latch),
      .irq_o,
      .command_base_o(command_base),
      .command_log2_o(command_log2),
      .command_tail_o(command_tail),
      .completion_base_o(completion_base),
      .completion_log2_o(completion_log2),
      .completion_head_o(completion_head),
      .watchdog_o(watchdog)
  );
  assign completions_o = completion_tail;

  // Soft reset and halting.
  logic reader_idle, writer_idle;
  soft_reset u_soft_reset (
      .clk_i,
      .rst_i,
      .request_i(soft_request),
      .bus_idle_i(reader_idle && writer_idle),
      .purged_i(completer_empty),
      .hold_o(hold),
      .purge_o(purge),
      .drop_pending_o(drop_pending),
      .reset_o(reset)
  );
  assign stage_reset = rst_i || hold;
  assign engine_reset_o = rst_i || reset;

  logic [63:0] front_clock, oldest_clock, command_clock, age;
  assign command_clock = completer_empty ? front_clock : oldest_clock;
  assign age = clock - command_clock;
  assign watchdog_halt = watchdog != '0 && run && (front_busy || !completer_empty) && age > 64'(watchdog);
  assign halt = front_halt || completer_halt || watchdog_halt;
  always_comb begin
    halt_failure = '{fault: FaultWatchdog, unit: UnitSequencer, detail: instruction_i};
    halt_tag = oldest_tag;
    if (completer_halt) halt_failure = completer_failure;
    else if (front_halt) begin
      halt_failure = front_failure;
      halt_tag = '0;
    end
  end

  // Reading: one consumer at a time.
  typedef enum logic [1:0] {
    ToFront,
    ToSlots,
    ToLoader
  } consumer_e;
  consumer_e consumer_q;
  logic front_read, send_read, move_read, load_read, read_valid, read_ready;
  logic [63:0] front_addr, send_addr, move_addr, read_addr;
  logic [26:0] front_words, send_words, move_words, load_words, read_words;
  logic data_valid, data_ready, slot_data_ready, read_error;
  logic [31:0] data, read_error_addr;
  descriptor_t descriptor;

  assign read_valid = front_read || send_read || move_read || load_read;
  always_comb begin
    {read_addr, read_words} = {front_addr, front_words};
    if (load_read) {read_addr, read_words} = {descriptor[3], descriptor[2], load_words};
    else if (send_read) {read_addr, read_words} = {send_addr, send_words};
    else if (move_read) {read_addr, read_words} = {move_addr, move_words};
  end
  always_ff @(posedge clk_i) begin
    if (read_valid && read_ready) consumer_q <= load_read ? ToLoader : (send_read || move_read) ? ToSlots : ToFront;
  end
  assign data_ready = consumer_q != ToSlots || slot_data_ready;

  axi_reader u_reader (
      .clk_i,
      .rst_i,
      .req_valid_i(read_valid),
      .req_ready_o(read_ready),
      .req_addr_i(read_addr),
      .req_words_i(read_words),
      .data_valid_o(data_valid),
      .data_ready_i(data_ready),
      .data_o(data),
      .error_o(read_error),
      .error_addr_o(read_error_addr),
      .idle_o(reader_idle),
      .abort_i(hold),
      .m_axi_arvalid_o,
      .m_axi_arready_i,
      .m_axi_araddr_o,
      .m_axi_arlen_o,
      .m_axi_rvalid_i,
      .m_axi_rready_o,
      .m_axi_rdata_i,
      .m_axi_rresp_i,
      .m_axi_rlast_i
  );

  // Writing: completions, saved slots, results.
  logic completion_valid, save_valid, write_valid, write_ready, write_error;
  logic [63:0] completion_addr, save_addr, write_addr;
  logic [31:0] completion_data, save_data, write_data, write_error_addr;
  assign write_valid = (completion_valid || save_valid || result_valid_i) && !hold;
  always_comb begin
    {write_addr, write_data} = {result_addr_i, result_data_i};
    if (completion_valid) {write_addr, write_data} = {completion_addr, completion_data};
    else if (save_valid) {write_addr, write_data} = {save_addr, save_data};
  end
  assign result_ready_o = write_ready && !completion_valid && !save_valid && !hold;

  axi_writer u_writer (
      .clk_i,
      .rst_i,
      .valid_i(write_valid),
      .ready_o(write_ready),
      .addr_i(write_addr),
      .data_i(write_data),
      .idle_o(writer_idle),
      .error_o(write_error),
      .error_addr_o(write_error_addr),
      .m_axi_awvalid_o,
      .m_axi_awready_i,
      .m_axi_awaddr_o,
      .m_axi_wvalid_o,
      .m_axi_wready_i,
      .m_axi_wdata_o,
      .m_axi_bvalid_i,
      .m_axi_bready_o,
      .m_axi_bresp_i
  );

  // Commands.
  logic command_valid, command_ready, command_irq;
  logic [31:0] command_tag;
  logic [63:0] command_start;
  logic [EncSlots-1:0] command_enc, enc_written, enc_none, drop_enc;
  logic [PredSlots-1:0] command_pred, pred_written, pred_none, drop_pred;
  logic clear_marks, mark, accept, store_we, front_get, got, send_start, send_done, slots_start, slots_done, load_start, start_start, load_done;
  logic [15:0] store_addr, front_index, slots_index, send_index;
  logic end_valid, end_ready, drop, completions_full;
  failure_t entry_failure, slots_failure, load_failure, end_failure;
  logic [15:0] end_index;
  logic [31:0] result_bytes;
  logic [63:0] result_address;
  entry_words_t entry_words;
  header_t header;
  assign header_o = header;
  assign front_clock = command_start;

  front u_front (
      .clk_i,
      .rst_i(stage_reset),
      .run_i(run && !halt),
      .base_i(command_base),
      .log2_i(command_log2),
      .tail_i(command_tail),
      .head_o(command_head),
      .mem_size_i(MemBytes),
      .clock_i(clock),
      .halt_o(front_halt),
      .halt_failure_o(front_failure),
      .busy_o(front_busy),
      .pending_o(front_pending),
      .program_i(program_valid),
      .header_i(header),
      .enc_slots_i(enc_slots),
      .pred_slots_i(pred_slots),
      .read_valid_o(front_read),
      .read_ready_i(read_ready && !load_read && !send_read && !move_read),
      .read_addr_o(front_addr),
      .read_words_o(front_words),
      .data_valid_i(data_valid && consumer_q == ToFront),
      .data_i(data),
      .error_i(read_error && consumer_q == ToFront),
      .error_addr_i(read_error_addr),
      .command_valid_o(command_valid),
      .command_ready_i(command_ready),
      .command_tag_o(command_tag),
      .command_irq_o(command_irq),
      .command_clock_o(command_start),
      .command_enc_o(command_enc),
      .command_pred_o(command_pred),
      .empty_i(completer_empty),
      .clear_marks_o(clear_marks),
      .mark_o(mark),
      .accept_o(accept),
      .enc_written_i(enc_written),
      .pred_written_i(pred_written),
      .store_we_o(store_we),
      .store_addr_o(store_addr),
      .get_o(front_get),
      .index_o(front_index),
      .got_i(got),
      .entry_failure_i(entry_failure),
      .descriptor_o(descriptor),
      .result_bytes_o(result_bytes),
      .result_o(result_address),
      .send_start_o(send_start),
      .send_done_i(send_done),
      .slots_start_o(slots_start),
      .slots_done_i(slots_done),
      .slots_failure_i(slots_failure),
      .slots_index_i(slots_index),
      .load_o(load_start),
      .start_o(start_start),
      .load_done_i(load_done),
      .load_failure_i(load_failure),
      .end_valid_o(end_valid),
      .end_ready_i(end_ready),
      .end_failure_o(end_failure),
      .end_index_o(end_index)
  );

  // Entries: the store's index belongs to whoever works.
  logic send_get, slots_get, send_busy_q, slots_busy_q;
  always_ff @(posedge clk_i) begin
    if (stage_reset) begin
      send_busy_q  <= 1'b0;
      slots_busy_q <= 1'b0;
    end else begin
      if (send_start) send_busy_q <= 1'b1;
      else if (send_done) send_busy_q <= 1'b0;
      if (slots_start) slots_busy_q <= 1'b1;
      else if (slots_done) slots_busy_q <= 1'b0;
    end
  end

  entry_store u_store (
      .clk_i,
      .rst_i(stage_reset),
      .we_i(store_we),
      .waddr_i(store_addr[$clog2(4*MaxEntries)-1:0]),
      .wdata_i(data),
      .get_i(front_get || send_get || slots_get),
      .index_i((send_busy_q || send_start) ? send_index : (slots_busy_q || slots_start) ? slots_index : front_index),
      .got_o(got),
      .entry_o(entry_words)
  );

  logic [15:0] enc_slot, source_slot, destination_slot, set_slot;
  logic enc_live, enc_free, enc_marked, source_live, source_written, destination_live, destination_marked;
  logic mark_enc, mark_source, mark_destination, set_enc, set_pred, set_live, set_ended, encodes, decodes;
  logic [31:0] feature_bytes, slot_bytes;
  assign encodes = descriptor[0][7:0] == CmdEncode || descriptor[0][7:0] == CmdGreedy;
  assign decodes = descriptor[0][7:0] == CmdDecode;
  always_comb begin
    feature_bytes = '0;
    for (int v = 0; v < 3; v++) begin
      if (entry_words[0][18+v]) feature_bytes = feature_bytes + ((32'(header.feature_units) * Cols) << v);
    end
    slot_bytes = descriptor[0][8+FlagPrediction] ? 32'(header.pred_a_units) * Cols + 32'(header.pred_c_units) * (Rows / 2)
                                                 : 32'(header.enc_a_units) * Cols + 32'(header.enc_c_units) * (Rows / 2);
  end

  entry_check u_entry_check (
      .descriptor_i(descriptor),
      .entry_i(entry_words),
      .result_i(result_address),
      .result_bytes_i(result_bytes),
      .slot_bytes_i(slot_bytes),
      .header_i(header),
      .feature_bytes_i(feature_bytes),
      .enc_slots_i(enc_slots),
      .pred_slots_i(pred_slots),
      .mem_size_i(MemBytes),
      .enc_live_i(enc_live),
      .enc_free_i(enc_free),
      .enc_marked_i(enc_marked),
      .source_live_i(source_live),
      .source_written_i(source_written),
      .destination_live_i(destination_live),
      .destination_marked_i(destination_marked),
      .enc_slot_o(enc_slot),
      .source_o(source_slot),
      .destination_o(destination_slot),
      .mark_enc_o(mark_enc),
      .mark_source_o(mark_source),
      .mark_destination_o(mark_destination),
      .failure_o(entry_failure)
  );

  // An accepted entry: a full step leaves its encoder slot live, a shorter one ended; a prediction step leaves its destination live.
  logic full_step, predicts;
  assign full_step = entry_words[0][20:18] == header.vectors;
  assign predicts = descriptor[0][7:0] == CmdGreedy || (decodes && entry_words[0][22:21] != KindNone);
  slot_table #(
      .EncSlots (EncSlots),
      .PredSlots(PredSlots)
  ) u_slots (
      .clk_i,
      .rst_i,
      .enc_slot_i(set_enc ? set_slot : enc_slot),
      .enc_live_o(enc_live),
      .enc_free_o(enc_free),
      .enc_marked_o(enc_marked),
      .source_i(source_slot),
      .source_live_o(source_live),
      .source_written_o(source_written),
      .destination_i(set_pred ? set_slot : destination_slot),
      .destination_live_o(destination_live),
      .destination_marked_o(destination_marked),
      .clear_marks_i(clear_marks),
      .mark_enc_i(mark && mark_enc),
      .mark_source_i(mark && mark_source),
      .mark_destination_i(mark && mark_destination),
      .set_enc_i(set_enc || (accept && encodes)),
      .set_pred_i(set_pred || (accept && predicts)),
      .live_i(accept ? (full_step || decodes) : set_live),
      .pred_live_i(accept || set_live),
      .ended_i(accept ? !full_step : set_ended),
      .free_all_i(started),
      .drop_i(drop || (drop_pending && front_pending)),
      .drop_enc_i(drop ? drop_enc : enc_written),
      .drop_pred_i(drop ? drop_pred : pred_written),
      .enc_written_o(enc_written),
      .pred_written_o(pred_written),
      .enc_none_o(enc_none),
      .pred_none_o(pred_none)
  );

  // Who does the work.
  logic send_entry_valid, send_job, send_job_ready, send_job_done, send_abort, move_job, move_job_ready, move_job_done, move_abort;
  entry_t send_entry;
  slot_op_e send_op, move_op;
  logic [ActAddrW-1:0] send_act, move_act, move_to_act;
  logic [CellAddrW-1:0] move_cell, move_to_cell;
  logic [15:0] send_units, move_act_units, move_cell_units;
  logic [63:0] job_addr;
  logic data_taken;
  assign data_taken = data_valid && data_ready && consumer_q == ToSlots;

  entry_sender u_sender (
      .clk_i,
      .rst_i(stage_reset),
      .start_i(send_start),
      .descriptor_i(descriptor),
      .header_i(header),
      .done_o(send_done),
      .loading_o(),
      .get_o(send_get),
      .index_o(send_index),
      .got_i(got),
      .entry_i(entry_words),
      .read_valid_o(send_read),
      .read_ready_i(read_ready && !load_read),
      .read_addr_o(send_addr),
      .read_words_o(send_words),
      .data_taken_i(data_taken),
      .data_i(data),
      .error_i(read_error && consumer_q == ToSlots),
      .error_addr_i(read_error_addr),
      .job_valid_o(send_job),
      .job_ready_i(send_job_ready),
      .job_op_o(send_op),
      .job_act_o(send_act),
      .job_units_o(send_units),
      .job_done_i(send_job_done),
      .job_abort_o(send_abort),
      .features_free_i,
      .entry_valid_o(send_entry_valid),
      .entry_ready_i,
      .entry_o(send_entry)
  );

  slot_commands u_commands (
      .clk_i,
      .rst_i(stage_reset),
      .start_i(slots_start),
      .descriptor_i(descriptor),
      .header_i(header),
      .done_o(slots_done),
      .failure_o(slots_failure),
      .index_o(slots_index),
      .get_o(slots_get),
      .got_i(got),
      .entry_i(entry_words),
      .read_valid_o(move_read),
      .read_ready_i(read_ready && !load_read && !send_read),
      .read_addr_o(move_addr),
      .read_words_o(move_words),
      .error_i(read_error && consumer_q == ToSlots),
      .error_addr_i(read_error_addr),
      .job_valid_o(move_job),
      .job_ready_i(move_job_ready),
      .job_op_o(move_op),
      .job_act_o(move_act),
      .job_act_units_o(move_act_units),
      .job_cell_o(move_cell),
      .job_cell_units_o(move_cell_units),
      .job_to_act_o(move_to_act),
      .job_to_cell_o(move_to_cell),
      .job_addr_o(job_addr),
      .job_done_i(move_job_done),
      .job_abort_o(move_abort),
      .first_live_i(descriptor[0][8+FlagPrediction] ? source_live : enc_live),
      .first_free_i(descriptor[0][8+FlagPrediction] ? !source_live : enc_free),
      .set_enc_o(set_enc),
      .set_pred_o(set_pred),
      .set_slot_o(set_slot),
      .set_live_o(set_live),
      .set_ended_o(set_ended)
  );

  logic job_valid, job_ready, job_done;
  slot_op_e job_op;
  logic [ActAddrW-1:0] job_act;
  logic [CellAddrW-1:0] job_cell;
  logic [15:0] job_act_units, job_cell_units;
  slot_port u_slot_port (
      .clk_i,
      .rst_i(stage_reset || send_abort || move_abort),
      .header_i(header),
      .zero_valid_i,
      .zero_act_i,
      .zero_cell_i,
      .zero_done_o,
      .send_valid_i(send_job),
      .send_ready_o(send_job_ready),
      .send_op_i(send_op),
      .send_act_i(send_act),
      .send_units_i(send_units),
      .send_done_o(send_job_done),
      .move_valid_i(move_job),
      .move_ready_o(move_job_ready),
      .move_op_i(move_op),
      .move_act_i(move_act),
      .move_act_units_i(move_act_units),
      .move_cell_i(move_cell),
      .move_cell_units_i(move_cell_units),
      .move_done_o(move_job_done),
      .job_valid_o(job_valid),
      .job_ready_i(job_ready),
      .job_op_o(job_op),
      .job_act_o(job_act),
      .job_act_units_o(job_act_units),
      .job_cell_o(job_cell),
      .job_cell_units_o(job_cell_units),
      .job_done_i(job_done)
  );

  slot_engine #(
      .Rows(Rows),
      .Cols(Cols)
  ) u_slot_engine (
      .clk_i,
      .rst_i(stage_reset || send_abort || move_abort),
      .job_valid_i(job_valid),
      .job_ready_o(job_ready),
      .job_op_i(job_op),
      .job_act_i(job_act),
      .job_act_units_i(job_act_units),
      .job_cell_i(job_cell),
      .job_cell_units_i(job_cell_units),
      .job_to_act_i(move_to_act),
      .job_to_cell_i(move_to_cell),
      .job_addr_i(job_addr),
      .done_o(job_done),
      .data_valid_i(data_valid && consumer_q == ToSlots),
      .data_ready_o(slot_data_ready),
      .data_i(data),
      .save_valid_o(save_valid),
      .save_ready_i(write_ready && !completion_valid),
      .save_addr_o(save_addr),
      .save_data_o(save_data),
      .act_re_o,
      .act_re_ready_i,
      .act_raddr_o,
      .act_rdata_i,
      .act_we_o,
      .act_ready_i,
      .act_waddr_o,
      .act_wdata_o,
      .cell_re_o,
      .cell_re_ready_i,
      .cell_raddr_o,
      .cell_rdata_i,
      .cell_we_o,
      .cell_ready_i,
      .cell_waddr_o,
      .cell_wdata_o
  );

  program_loader u_loader (
      .clk_i,
      .rst_i,
      .abort_i(hold),
      .load_i(load_start),
      .start_i(start_start),
      .in_place_i(descriptor[0][8+FlagInPlace]),
      .address_i({descriptor[3], descriptor[2]}),
      .offset_i(descriptor[12]),
      .bytes_i(descriptor[13][28:0]),
      .space_i(descriptor[13][31:29]),
      .crc_i(descriptor[14]),
      .mem_size_i(MemBytes),
      .done_o(load_done),
      .fault_o(load_failure.fault),
      .unit_o(load_failure.unit),
      .detail_o(load_failure.detail),
      .read_valid_o(load_read),
      .read_ready_i(read_ready),
      .read_words_o(load_words),
      .data_valid_i(data_valid && consumer_q == ToLoader),
      .data_i(data),
      .error_i(read_error && consumer_q == ToLoader),
      .error_addr_i(read_error_addr),
      .load_valid_o,
      .load_space_o,
      .load_addr_o,
      .load_data_o,
      .valid_o(program_valid),
      .started_o(started),
      .program_id_o(program_id),
      .header_o(header),
      .enc_slots_o(enc_slots),
      .pred_slots_o(pred_slots)
  );

  // Entries to the sequencer: those with work, and the ends of commands without.
  assign entry_valid_o = send_entry_valid || end_valid;
  assign end_ready = entry_ready_i && !send_entry_valid;
  always_comb begin
    entry_o = send_entry;
    if (!send_entry_valid) begin
      entry_o = '0;
      entry_o.operation = CmdNop;
      entry_o.last = 1'b1;
      entry_o.index = end_index;
      {entry_o.fault, entry_o.unit, entry_o.detail} = {end_failure.fault, end_failure.unit, end_failure.detail};
    end
  end

  completer u_completer (
      .clk_i,
      .rst_i(rst_i || reset),
      .purge_i(purge),
      .command_valid_i(command_valid),
      .command_ready_o(command_ready),
      .command_tag_i(command_tag),
      .command_irq_i(command_irq),
      .command_clock_i(command_start),
      .command_enc_i(command_enc),
      .command_pred_i(command_pred),
      .empty_o(completer_empty),
      .done_valid_i,
      .done_ready_o,
      .done_i,
      .base_i(completion_base),
      .log2_i(completion_log2),
      .taken_i(completion_head),
      .tail_o(completion_tail),
      .full_o(completions_full),
      .clock_i(clock),
      .enc_none_i(enc_none),
      .pred_none_i(pred_none),
      .drop_o(drop),
      .drop_enc_o(drop_enc),
      .drop_pred_o(drop_pred),
      .word_valid_o(completion_valid),
      .word_ready_i(write_ready && !hold),
      .word_addr_o(completion_addr),
      .word_data_o(completion_data),
      .writer_idle_i(writer_idle),
      .write_error_i(write_error),
      .write_error_addr_i(write_error_addr),
      .irq_o(completion_irq),
      .halt_o(completer_halt),
      .failure_o(completer_failure),
      .tag_o(oldest_tag),
      .oldest_clock_o(oldest_clock)
  );

  counters u_counters (
      .clk_i,
      .rst_i(rst_i || reset),
      .enable_i(enabled),
      .latch_i(latch),
      .active_i(matrix_active_i),
      .backpressure_i(matrix_blocked_i || (completions_full && threads_idle_i && !completer_empty)),
      .weights_i(1'b0),
      .dependency_i(thread_waits_i || !threads_idle_i),
      .loading_i(front_busy || !completer_empty),
      .clock_o(clock),
      .latched_o(latched)
  );
endmodule
