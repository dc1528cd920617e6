// SPDX-License-Identifier: Apache-2.0
// Commands between the rings: the stage that takes them in, the completer that ends them, and the entries and slots that both work with.
module command_core
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
  import seat_pkg::*;
  import slot_pkg::*;
#(
    parameter logic [63:0] MemBytes = 64'd16384
) (
    input logic clk_i,
    input logic rst_i,
    input logic hold_i,   // soft reset, from its beginning to its end
    input logic purge_i,  // commands on their way are dropped
    input logic reset_i,  // its last clock

    // Rings.
    input  logic                 run_i,
    input  logic     [     63:0] command_base_i,
    input  logic     [      4:0] command_log2_i,
    input  logic     [     31:0] command_tail_i,
    output logic     [     31:0] command_head_o,
    input  logic     [     63:0] completion_base_i,
    input  logic     [      4:0] completion_log2_i,
    input  logic     [     31:0] completion_head_i,
    output logic     [     31:0] completion_tail_o,
    output logic                 completion_irq_o,
    output logic                 held_o,
    input  logic     [     63:0] clock_i,
    output logic                 front_halt_o,
    output failure_t             front_failure_o,
    output logic                 front_busy_o,
    output way_t                 command_o,            // in work at the front
    output logic                 completer_halt_o,
    output failure_t             completer_failure_o,
    output logic                 completer_empty_o,
    output logic     [     63:0] oldest_clock_o,
    output logic     [     31:0] oldest_tag_o,
    output logic     [WorkW-1:0] oldest_work_o,

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

    // Seater and engine.
    output logic                work_valid_o,
    input  logic                work_ready_i,
    output work_t               work_o,
    input  logic                done_valid_i,
    output logic                done_ready_o,
    input  work_done_t          done_i,
    input  logic                entry_valid_i,
    output logic                entry_ready_o,
    input  logic         [15:0] entry_index_i,
    output logic                entry_got_o,
    output entry_words_t        entry_o,
    input  logic                slot_valid_i,
    output logic                slot_ready_o,
    input  slot_ask_t           slot_i,
    output logic                slot_got_o,
    output slot_told_t          slot_o,

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
    output logic               save_valid_o,
    input  logic               save_ready_i,
    output write_t             save_o,
    input  logic               writer_idle_i,
    output logic               word_valid_o,
    input  logic               word_ready_i,
    output write_t             word_o,
    input  logic               write_taken_i,
    input  logic               write_answered_i,
    input  logic               write_error_i,
    input  logic   [     31:0] write_error_addr_i,
    input  logic               write_error_work_i,
    input  logic   [WorkW-1:0] write_work_i
);
  // Who asks for entries and slots, the first first.
  localparam int unsigned OfCompleter = 0;
  localparam int unsigned OfSeater = 1;
  localparam int unsigned OfFront = 2;  // checks
  localparam int unsigned OfMoves = 3;  // slot commands
  localparam int unsigned Users = 4;
  localparam int unsigned OfFeatures = 4;  // entries only
  localparam int unsigned Entries = 4 << $clog2(MaxEntries);

  logic clear, clearing, command_valid, command_ready, alone, accept, deciding, dropping, suspects, end_valid, freed;
  logic [WorkW-1:0] command_work;
  logic [15:0] end_index, freed_count;
  failure_t end_failure;

  // Entries and slots.
  logic entry_valid[Users+1], entry_ready[Users+1], entry_got[Users+1];
  logic [15:0] entry_index[Users+1];
  logic slot_valid[Users], slot_ready[Users], slot_told[Users];
  slot_edit_t slot_edit[Users];
  slot_t slot_word;
  logic store_we;
  logic [15:0] store_index;
  logic [1:0] store_word;

  batch_stage #(
      .MemBytes(MemBytes),
      .Entries (Entries)
  ) u_stage (
      .clk_i,
      .rst_i,
      .hold_i,
      .run_i,
      .base_i(command_base_i),
      .log2_i(command_log2_i),
      .tail_i(command_tail_i),
      .head_o(command_head_o),
      .clock_i,
      .halt_o(front_halt_o),
      .halt_failure_o(front_failure_o),
      .busy_o(front_busy_o),
      .program_o,
      .program_id_o,
      .header_o,
      .places_o,
      .enc_slots_o,
      .pred_slots_o,
      .load_valid_o,
      .load_space_o,
      .load_addr_o,
      .load_data_o,
      .clear_o(clear),
      .clearing_i(clearing),
      .command_valid_o(command_valid),
      .command_ready_i(command_ready),
      .command_o,
      .command_work_i(command_work),
      .alone_i(alone),
      .empty_i(completer_empty_o),
      .accept_o(accept),
      .deciding_o(deciding),
      .dropping_i(dropping),
      .suspects_i(suspects),
      .end_valid_o(end_valid),
      .end_failure_o(end_failure),
      .end_index_o(end_index),
      .freed_i(freed),
      .freed_count_i(freed_count),
      .work_valid_o,
      .work_ready_i,
      .work_o,
      .store_we_o(store_we),
      .store_index_o(store_index),
      .store_word_o(store_word),
      .entry_valid_o('{entry_valid[OfFront], entry_valid[OfMoves], entry_valid[OfFeatures]}),
      .entry_ready_i('{entry_ready[OfFront], entry_ready[OfMoves], entry_ready[OfFeatures]}),
      .entry_index_o('{entry_index[OfFront], entry_index[OfMoves], entry_index[OfFeatures]}),
      .entry_got_i('{entry_got[OfFront], entry_got[OfMoves], entry_got[OfFeatures]}),
      .entry_i(entry_o),
      .slot_valid_o('{slot_valid[OfFront], slot_valid[OfMoves]}),
      .slot_ready_i('{slot_ready[OfFront], slot_ready[OfMoves]}),
      .slot_o('{slot_edit[OfFront], slot_edit[OfMoves]}),
      .slot_told_i('{slot_told[OfFront], slot_told[OfMoves]}),
      .slot_i(slot_word),
      .data_i,
      .error_addr_i,
      .front_read_o,
      .front_read_ready_i,
      .front_o,
      .front_data_i,
      .front_error_i,
      .load_read_o,
      .load_read_ready_i,
      .load_o,
      .load_data_i,
      .load_error_i,
      .moves_busy_o,
      .move_read_o,
      .move_read_ready_i,
      .move_o,
      .move_data_i,
      .move_data_ready_o,
      .move_error_i,
      .save_valid_o,
      .save_ready_i,
      .save_o,
      .writer_idle_i
  );

  batch_completer u_completer (
      .clk_i,
      .rst_i(rst_i || reset_i),
      .purge_i,
      .command_valid_i(command_valid),
      .command_ready_o(command_ready),
      .command_i(command_o),
      .command_work_o(command_work),
      .empty_o(completer_empty_o),
      .alone_o(alone),
      .accept_i(accept),
      .end_valid_i(end_valid),
      .end_failure_i(end_failure),
      .end_index_i(end_index),
      .deciding_i(deciding),
      .dropping_o(dropping),
      .suspects_o(suspects),
      .freed_o(freed),
      .freed_count_o(freed_count),
      .done_valid_i,
      .done_ready_o,
      .done_i,
      .base_i(completion_base_i),
      .log2_i(completion_log2_i),
      .taken_i(completion_head_i),
      .tail_o(completion_tail_o),
      .held_o,
      .clock_i,
      .word_valid_o,
      .word_ready_i,
      .word_o,
      .write_taken_i,
      .write_answered_i,
      .write_error_i,
      .write_error_addr_i,
      .write_error_work_i,
      .write_work_i,
      .header_i(header_o),
      .enc_slots_i(enc_slots_o),
      .pred_slots_i(pred_slots_o),
      .entry_valid_o(entry_valid[OfCompleter]),
      .entry_ready_i(entry_ready[OfCompleter]),
      .entry_index_o(entry_index[OfCompleter]),
      .entry_got_i(entry_got[OfCompleter]),
      .entry_i(entry_o),
      .slot_valid_o(slot_valid[OfCompleter]),
      .slot_ready_i(slot_ready[OfCompleter]),
      .slot_o(slot_edit[OfCompleter]),
      .slot_told_i(slot_told[OfCompleter]),
      .slot_i(slot_word),
      .irq_o(completion_irq_o),
      .halt_o(completer_halt_o),
      .failure_o(completer_failure_o),
      .tag_o(oldest_tag_o),
      .oldest_work_o,
      .oldest_clock_o
  );

  entry_ring #(
      .Entries(Entries),
      .Readers(Users + 1)
  ) u_entries (
      .clk_i,
      .rst_i,
      .we_i(store_we),
      .windex_i(store_index),
      .word_i(store_word),
      .wdata_i(data_i),
      .valid_i(entry_valid),
      .ready_o(entry_ready),
      .index_i(entry_index),
      .got_o(entry_got),
      .entry_o
  );

  slot_memory #(
      .EncSlots(EncSlots),
      .PredSlots(PredSlots),
      .Users(Users)
  ) u_slots (
      .clk_i,
      .rst_i,
      .clear_i(clear),
      .clearing_o(clearing),
      .valid_i(slot_valid),
      .ready_o(slot_ready),
      .edit_i(slot_edit),
      .told_o(slot_told),
      .slot_o(slot_word)
  );

  // The seater's; a soft reset takes nothing more from it, as what is busy then is freed.
  assign entry_valid[OfSeater] = entry_valid_i;
  assign entry_ready_o = entry_ready[OfSeater];
  assign entry_index[OfSeater] = entry_index_i;
  assign entry_got_o = entry_got[OfSeater];
  assign slot_valid[OfSeater] = slot_valid_i && !hold_i;
  assign slot_ready_o = slot_ready[OfSeater];
  assign slot_got_o = slot_told[OfSeater];
  assign slot_o = '{blank: slot_word.blank, busy: slot_word.busy, bank: slot_word.bank};
  always_comb begin
    slot_edit[OfSeater] = '0;
    slot_edit[OfSeater].prediction = slot_i.prediction;
    slot_edit[OfSeater].slot = slot_i.slot;
    slot_edit[OfSeater].set.busy = slot_i.op == SlotTake;
    slot_edit[OfSeater].clear.busy = slot_i.op == SlotLeave;
    slot_edit[OfSeater].set.blank = slot_i.op == SlotTake && slot_i.zeros;
    slot_edit[OfSeater].clear.blank = slot_i.op == SlotLeave;
    slot_edit[OfSeater].set.bank = slot_i.op == SlotTake && slot_i.bank;
    slot_edit[OfSeater].clear.bank = slot_i.op == SlotTake && !slot_i.bank;
  end
endmodule
