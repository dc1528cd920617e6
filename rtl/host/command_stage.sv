// SPDX-License-Identifier: Apache-2.0
// The F stage: commands from the ring to entries for the sequencer, with those who help it: the desk for entries and slots, the loader for programs.
module command_stage
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
#(
    parameter logic [63:0] MemBytes = 64'd16384
) (
    input logic clk_i,
    input logic rst_i,
    input logic hold_i,         // soft reset: the command in work is given up
    input logic drop_pending_i, // one clock: its slots are freed

    // Command ring.
    input  logic            run_i,
    input  logic     [63:0] base_i,
    input  logic     [ 4:0] log2_i,
    input  logic     [31:0] tail_i,
    output logic     [31:0] head_o,
    input  logic     [63:0] clock_i,
    output logic            halt_o,          // one clock
    output failure_t        halt_failure_o,
    output logic            busy_o,

    // Commands on their way, to the completer.
    output logic                     command_valid_o,
    input  logic                     command_ready_i,
    output command_t                 command_o,
    input  logic                     empty_i,          // there is none
    output logic     [ EncSlots-1:0] enc_none_o,
    output logic     [PredSlots-1:0] pred_none_o,
    input  logic                     drop_i,           // free these slots
    input  logic     [ EncSlots-1:0] drop_enc_i,
    input  logic     [PredSlots-1:0] drop_pred_i,

    // The current program, and a new one's way to the memories.
    output logic           program_o,
    output logic    [31:0] program_id_o,
    output header_t        header_o,
    output logic    [15:0] enc_slots_o,
    output logic    [15:0] pred_slots_o,
    output logic           load_valid_o,
    output space_e         load_space_o,
    output logic    [26:0] load_addr_o,
    output logic    [31:0] load_data_o,

    // Reading.
    output logic         load_read_o,
    input  logic         load_read_ready_i,
    output read_t        load_o,
    output logic         send_read_o,
    input  logic         send_read_ready_i,
    output read_t        send_o,
    output logic         move_read_o,
    input  logic         move_read_ready_i,
    output read_t        move_o,
    output logic         front_read_o,
    input  logic         front_read_ready_i,
    output read_t        front_o,
    input  logic  [31:0] data_i,
    input  logic         load_data_i,
    input  logic         slots_taken_i,       // a word goes to the slot engine
    input  logic         front_data_i,
    input  logic         load_error_i,
    input  logic         slots_error_i,
    input  logic         front_error_i,
    input  logic  [31:0] error_addr_i,

    // The slot engine.
    output logic      send_job_valid_o,
    input  logic      send_job_ready_i,
    output slot_job_t send_job_o,
    input  logic      send_job_done_i,
    output logic      move_job_valid_o,
    input  logic      move_job_ready_i,
    output slot_job_t move_job_o,
    input  logic      move_job_done_i,
    output logic      job_abort_o,

    // The sequencer.
    input  logic   features_free_i,
    output logic   entry_valid_o,
    input  logic   entry_ready_i,
    output entry_t entry_o
);
  logic stage_reset, pending, started;
  assign stage_reset = rst_i || hold_i;

  descriptor_t descriptor;
  logic clear_marks, mark, accept, store_we, get, got, send_start, send_done, send_failed, slots_start, slots_done;
  logic load_start, start_start, load_done, end_valid, end_ready, send_entry_valid;
  logic [15:0] store_addr, index, slots_index, end_index;
  logic [31:0] result_bytes;
  logic [64:0] result_address;
  logic [EncSlots-1:0] enc_written, enc_read;
  logic [PredSlots-1:0] pred_written, pred_read;
  failure_t entry_failure, slots_failure, load_failure, end_failure;
  entry_t send_entry;

  front u_front (
      .clk_i,
      .rst_i(stage_reset),
      .run_i,
      .base_i,
      .log2_i,
      .tail_i,
      .head_o,
      .mem_size_i(MemBytes),
      .clock_i,
      .halt_o,
      .halt_failure_o,
      .busy_o,
      .pending_o(pending),
      .program_i(program_o),
      .classes_i(header_o.classes),
      .read_valid_o(front_read_o),
      .read_ready_i(front_read_ready_i),
      .read_o(front_o),
      .data_valid_i(front_data_i),
      .data_i,
      .error_i(front_error_i),
      .error_addr_i,
      .command_valid_o,
      .command_ready_i,
      .command_o,
      .empty_i,
      .clear_marks_o(clear_marks),
      .mark_o(mark),
      .accept_o(accept),
      .enc_written_i(enc_written),
      .pred_written_i(pred_written),
      .enc_read_i(enc_read),
      .pred_read_i(pred_read),
      .store_we_o(store_we),
      .store_addr_o(store_addr),
      .get_o(get),
      .index_o(index),
      .got_i(got),
      .entry_failure_i(entry_failure),
      .descriptor_o(descriptor),
      .result_bytes_o(result_bytes),
      .result_o(result_address),
      .send_start_o(send_start),
      .send_done_i(send_done),
      .send_failed_i(send_failed),
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

  entry_desk #(
      .MemBytes(MemBytes)
  ) u_desk (
      .clk_i,
      .rst_i,
      .hold_i,
      .descriptor_i(descriptor),
      .result_i(result_address),
      .result_bytes_i(result_bytes),
      .header_i(header_o),
      .enc_slots_i(enc_slots_o),
      .pred_slots_i(pred_slots_o),
      .store_we_i(store_we),
      .store_addr_i(store_addr),
      .data_i,
      .get_i(get),
      .index_i(index),
      .got_o(got),
      .entry_failure_o(entry_failure),
      .clear_marks_i(clear_marks),
      .mark_i(mark),
      .accept_i(accept),
      .send_start_i(send_start),
      .send_done_o(send_done),
      .send_failed_o(send_failed),
      .slots_start_i(slots_start),
      .slots_done_o(slots_done),
      .slots_failure_o(slots_failure),
      .slots_index_o(slots_index),
      .enc_written_o(enc_written),
      .pred_written_o(pred_written),
      .enc_read_o(enc_read),
      .pred_read_o(pred_read),
      .enc_none_o,
      .pred_none_o,
      .free_all_i(started),
      .drop_written_i(drop_pending_i && pending),
      .drop_i,
      .drop_enc_i,
      .drop_pred_i,
      .send_read_o,
      .send_read_ready_i,
      .send_o,
      .move_read_o,
      .move_read_ready_i,
      .move_o,
      .data_taken_i(slots_taken_i),
      .error_i(slots_error_i),
      .error_addr_i,
      .send_job_valid_o,
      .send_job_ready_i,
      .send_job_o,
      .send_job_done_i,
      .move_job_valid_o,
      .move_job_ready_i,
      .move_job_o,
      .move_job_done_i,
      .job_abort_o,
      .features_free_i,
      .entry_valid_o(send_entry_valid),
      .entry_ready_i,
      .entry_o(send_entry)
  );

  assign load_o.addr = {descriptor[3], descriptor[2]};
  program_loader u_loader (
      .clk_i,
      .rst_i,
      .abort_i(hold_i),
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
      .read_valid_o(load_read_o),
      .read_ready_i(load_read_ready_i),
      .read_words_o(load_o.words),
      .data_valid_i(load_data_i),
      .data_i,
      .error_i(load_error_i),
      .error_addr_i,
      .load_valid_o,
      .load_space_o,
      .load_addr_o,
      .load_data_o,
      .valid_o(program_o),
      .started_o(started),
      .program_id_o,
      .header_o,
      .enc_slots_o,
      .pred_slots_o
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
endmodule
