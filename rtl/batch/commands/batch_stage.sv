// SPDX-License-Identifier: Apache-2.0
// Commands from the ring to work for the seater, with those who help the front: the walker for entries and slots, the slot commands, the loader for programs.
module batch_stage
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
  import seat_pkg::*;
  import slot_pkg::*;
#(
    parameter logic [63:0] MemBytes = 64'd16384,
    parameter int unsigned Entries = 256  // of the entry store
) (
    input logic clk_i,
    input logic rst_i,
    input logic hold_i, // soft reset: the command in work is given up

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

    // The current program, and a new one's way to the memories.
    output logic           program_o,
    output logic    [31:0] program_id_o,
    output header_t        header_o,
    output places_t        places_o,
    output logic    [15:0] enc_slots_o,
    output logic    [15:0] pred_slots_o,
    output logic           load_valid_o,
    output space_e         load_space_o,
    output logic    [26:0] load_addr_o,
    output logic    [31:0] load_data_o,
    output logic           clear_o,       // one clock: all slots become free
    input  logic           clearing_i,

    // The completer.
    output logic                 command_valid_o,
    input  logic                 command_ready_i,
    output way_t                 command_o,
    input  logic     [WorkW-1:0] command_work_i,
    input  logic                 alone_i,
    input  logic                 empty_i,
    output logic                 accept_o,
    output logic                 deciding_o,
    input  logic                 dropping_i,
    input  logic                 suspects_i,
    output logic                 end_valid_o,
    output failure_t             end_failure_o,
    output logic     [     15:0] end_index_o,
    input  logic                 freed_i,
    input  logic     [     15:0] freed_count_i,

    // The seater.
    output logic  work_valid_o,
    input  logic  work_ready_i,
    output work_t work_o,

    // Entry store and slot table: for checks, slot commands, features.
    output logic                store_we_o,
    output logic         [15:0] store_index_o,
    output logic         [ 1:0] store_word_o,
    output logic                entry_valid_o[3],
    input  logic                entry_ready_i[3],
    output logic         [15:0] entry_index_o[3],
    input  logic                entry_got_i  [3],
    input  entry_words_t        entry_i,
    output logic                slot_valid_o [2],
    input  logic                slot_ready_i [2],
    output slot_edit_t          slot_o       [2],
    input  logic                slot_told_i  [2],
    input  slot_t               slot_i,

    // Reading.
    input  logic  [31:0] data_i,
    input  logic  [31:0] error_addr_i,
    output logic         front_read_o,
    input  logic         front_read_ready_i,
    output read_t        front_o,
    input  logic         front_data_i,
    input  logic         front_error_i,
    output logic         load_read_o,
    input  logic         load_read_ready_i,
    output read_t        load_o,
    input  logic         load_data_i,
    input  logic         load_error_i,
    output logic         moves_busy_o,
    output logic         move_read_o,
    input  logic         move_read_ready_i,
    output read_t        move_o,
    input  logic         move_data_i,
    output logic         move_data_ready_o,
    input  logic         move_error_i,

    // Writing.
    output logic   save_valid_o,
    input  logic   save_ready_i,
    output write_t save_o,
    input  logic   writer_idle_i
);
  logic stage_reset;
  assign stage_reset = rst_i || hold_i;

  descriptor_t descriptor;
  listed_t listed;
  walk_e walk;
  logic walk_start, walk_done, slots_start, slots_done, load_start, start_start, load_done;
  failure_t walk_failure, slots_failure, load_failure;
  logic [15:0] walk_index, slots_index;
  logic [31:0] result_bytes;
  logic features_start, features_done, front_asks, features_ask;
  failure_t features_failure;
  logic [15:0] features_index;
  read_t front_words, features_words;

  batch_front #(
      .Entries(Entries)
  ) u_front (
      .clk_i,
      .rst_i(stage_reset),
      .run_i(run_i && !clearing_i),
      .base_i,
      .log2_i,
      .tail_i,
      .head_o,
      .mem_size_i(MemBytes),
      .clock_i,
      .halt_o,
      .halt_failure_o,
      .busy_o,
      .program_i(program_o),
      .classes_i(header_o.classes),
      .read_valid_o(front_asks),
      .read_ready_i(front_read_ready_i),
      .read_o(front_words),
      .data_valid_i(front_data_i),
      .data_i,
      .error_i(front_error_i),
      .error_addr_i,
      .command_valid_o,
      .command_ready_i,
      .command_o,
      .command_work_i,
      .alone_i,
      .empty_i,
      .accept_o,
      .deciding_o,
      .dropping_i,
      .suspects_i,
      .end_valid_o,
      .end_failure_o,
      .end_index_o,
      .freed_i,
      .freed_count_i,
      .store_we_o,
      .store_index_o,
      .store_word_o,
      .walk_start_o(walk_start),
      .walk_o(walk),
      .listed_o(listed),
      .walk_done_i(walk_done),
      .walk_failure_i(walk_failure),
      .walk_index_i(walk_index),
      .descriptor_o(descriptor),
      .result_bytes_o(result_bytes),
      .features_start_o(features_start),
      .features_done_i(features_done),
      .features_failure_i(features_failure),
      .features_index_i(features_index),
      .work_valid_o,
      .work_ready_i,
      .work_o,
      .slots_start_o(slots_start),
      .slots_done_i(slots_done),
      .slots_failure_i(slots_failure),
      .slots_index_i(slots_index),
      .load_o(load_start),
      .start_o(start_start),
      .load_done_i(load_done),
      .load_failure_i(load_failure)
  );

  entry_walker #(
      .Checks  (1'b1),
      .MemBytes(MemBytes)
  ) u_walker (
      .clk_i,
      .rst_i(stage_reset),
      .start_i(walk_start),
      .walk_i(walk),
      .listed_i(listed),
      .done_o(walk_done),
      .failure_o(walk_failure),
      .index_o(walk_index),
      .header_i(header_o),
      .enc_slots_i(enc_slots_o),
      .pred_slots_i(pred_slots_o),
      .descriptor_i(descriptor),
      .result_bytes_i(result_bytes),
      .entry_valid_o(entry_valid_o[0]),
      .entry_ready_i(entry_ready_i[0]),
      .entry_index_o(entry_index_o[0]),
      .entry_got_i(entry_got_i[0]),
      .entry_i,
      .slot_valid_o(slot_valid_o[0]),
      .slot_ready_i(slot_ready_i[0]),
      .slot_o(slot_o[0]),
      .slot_told_i(slot_told_i[0]),
      .slot_i
  );

  // Front and feature check read in turns.
  assign front_read_o = front_asks || features_ask;
  assign front_o = features_ask ? features_words : front_words;
  feature_check u_features (
      .clk_i,
      .rst_i(stage_reset),
      .start_i(features_start),
      .listed_i(listed),
      .base_i({descriptor[11], descriptor[10]}),
      .header_i(header_o),
      .done_o(features_done),
      .failure_o(features_failure),
      .index_o(features_index),
      .entry_valid_o(entry_valid_o[2]),
      .entry_ready_i(entry_ready_i[2]),
      .entry_index_o(entry_index_o[2]),
      .entry_got_i(entry_got_i[2]),
      .entry_i,
      .read_valid_o(features_ask),
      .read_ready_i(front_read_ready_i),
      .read_o(features_words),
      .data_valid_i(front_data_i),
      .data_i,
      .error_i(front_error_i),
      .error_addr_i
  );

  slot_moves u_moves (
      .clk_i,
      .rst_i(stage_reset),
      .start_i(slots_start),
      .listed_i(listed),
      .base_i({descriptor[5], descriptor[4]}),
      .header_i(header_o),
      .places_i(places_o),
      .busy_o(moves_busy_o),
      .done_o(slots_done),
      .failure_o(slots_failure),
      .index_o(slots_index),
      .entry_valid_o(entry_valid_o[1]),
      .entry_ready_i(entry_ready_i[1]),
      .entry_index_o(entry_index_o[1]),
      .entry_got_i(entry_got_i[1]),
      .entry_i,
      .slot_valid_o(slot_valid_o[1]),
      .slot_ready_i(slot_ready_i[1]),
      .slot_o(slot_o[1]),
      .slot_told_i(slot_told_i[1]),
      .slot_i,
      .read_valid_o(move_read_o),
      .read_ready_i(move_read_ready_i),
      .read_o(move_o),
      .data_valid_i(move_data_i),
      .data_ready_o(move_data_ready_o),
      .data_i,
      .error_i(move_error_i),
      .error_addr_i,
      .write_valid_o(save_valid_o),
      .write_ready_i(save_ready_i),
      .write_o(save_o),
      .writer_idle_i
  );

  assign load_o.addr = {descriptor[3], descriptor[2]};
  batch_loader u_loader (
      .clk_i,
      .rst_i,
      .abort_i(hold_i),
      .load_i(load_start),
      .start_i(start_start),
      .in_place_i(descriptor[0][8+FlagInPlace]),
      .unchecked_i(descriptor[0][8+FlagUnchecked]),
      .address_i({descriptor[3], descriptor[2]}),
      .state_i({descriptor[5], descriptor[4]}),
      .weights_i({descriptor[11], descriptor[10]}),
      .offset_i(descriptor[12]),
      .bytes_i(descriptor[13][28:0]),
      .space_i(descriptor[13][31:29]),
      .crc_i(descriptor[14]),
      .mem_size_i(MemBytes),
      .clearing_i,
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
      .started_o(clear_o),
      .program_id_o,
      .header_o,
      .places_o,
      .enc_slots_o,
      .pred_slots_o
  );

  logic unused;
  assign unused = &{1'b0, descriptor};  // fields that nobody needs
endmodule
