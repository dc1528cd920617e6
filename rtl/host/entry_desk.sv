// SPDX-License-Identifier: Apache-2.0
// Entries and slots of the command in work: keeps its entries, checks them against the slot table, and works them off, as entries for
// the sequencer or as moves of slots.
module entry_desk
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
#(
    parameter logic [63:0] MemBytes = 64'd16384
) (
    input logic clk_i,
    input logic rst_i,
    input logic hold_i, // soft reset: no command is in work; slots stay

    // The command, until its work is done; and the current program.
    input descriptor_t        descriptor_i,
    input logic        [64:0] result_i,        // address of the result of the entry in check
    input logic        [31:0] result_bytes_i,
    input header_t            header_i,
    input logic        [15:0] enc_slots_i,
    input logic        [15:0] pred_slots_i,

    // The front fills the store, looks at one entry after another, and marks or accepts it.
    input  logic            store_we_i,
    input  logic     [15:0] store_addr_i,
    input  logic     [31:0] data_i,
    input  logic            get_i,
    input  logic     [15:0] index_i,
    output logic            got_o,            // the entry is there, and checked
    output failure_t        entry_failure_o,
    input  logic            clear_marks_i,
    input  logic            mark_i,
    input  logic            accept_i,

    // Work: entries to the sequencer, or moves of slots.
    input  logic            send_start_i,
    output logic            send_done_o,
    output logic            send_failed_o,
    input  logic            slots_start_i,
    output logic            slots_done_o,
    output failure_t        slots_failure_o,
    output logic     [15:0] slots_index_o,

    // Slots that the command in check writes, and slots that are free; and those to be freed.
    output logic [ EncSlots-1:0] enc_written_o,
    output logic [PredSlots-1:0] pred_written_o,
    output logic [ EncSlots-1:0] enc_read_o,      // and reads
    output logic [PredSlots-1:0] pred_read_o,
    output logic [ EncSlots-1:0] enc_none_o,
    output logic [PredSlots-1:0] pred_none_o,
    input  logic                 free_all_i,
    input  logic                 drop_written_i,  // those of the command in check
    input  logic                 drop_i,          // these
    input  logic [ EncSlots-1:0] drop_enc_i,
    input  logic [PredSlots-1:0] drop_pred_i,

    // Reading features and restored slots.
    output logic         send_read_o,
    input  logic         send_read_ready_i,
    output read_t        send_o,
    output logic         move_read_o,
    input  logic         move_read_ready_i,
    output read_t        move_o,
    input  logic         data_taken_i,       // a word goes to the slot engine
    input  logic         error_i,
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
    output logic      job_abort_o,       // the words that its job waits for will not come

    // The sequencer.
    input  logic   features_free_i,
    output logic   entry_valid_o,
    input  logic   entry_ready_i,
    output entry_t entry_o
);
  logic stage_reset;
  assign stage_reset = rst_i || hold_i;

  // The store's index belongs to whoever works.
  logic send_get, slots_get, send_busy_q, slots_busy_q;
  logic [15:0] send_index;
  logic got;
  entry_words_t entry;
  always_ff @(posedge clk_i) begin
    if (stage_reset) begin
      send_busy_q  <= 1'b0;
      slots_busy_q <= 1'b0;
    end else begin
      if (send_start_i) send_busy_q <= 1'b1;
      else if (send_done_o) send_busy_q <= 1'b0;
      if (slots_start_i) slots_busy_q <= 1'b1;
      else if (slots_done_o) slots_busy_q <= 1'b0;
    end
  end

  logic [15:0] index;
  always_comb begin
    index = index_i;
    if (send_busy_q || send_start_i) index = send_index;
    else if (slots_busy_q || slots_start_i) index = slots_index_o;
  end

  entry_store u_store (
      .clk_i,
      .rst_i(stage_reset),
      .we_i(store_we_i),
      .waddr_i(store_addr_i[$clog2(4*MaxEntries)-1:0]),
      .wdata_i(data_i),
      .get_i(get_i || send_get || slots_get),
      .index_i(index),
      .got_o(got),
      .entry_o(entry)
  );

  // The check.
  logic [15:0] enc_slot, source_slot, destination_slot;
  logic [15:0] enc_slot_q, source_slot_q, destination_slot_q;
  logic enc_live, enc_free, enc_marked, source_live, source_written, destination_live, destination_marked;
  logic mark_enc, mark_enc_read, mark_source, mark_destination, encodes, decodes;
  logic [31:0] feature_bytes, slot_bytes;
  assign encodes = descriptor_i[0][7:0] == CmdEncode || descriptor_i[0][7:0] == CmdGreedy;
  assign decodes = descriptor_i[0][7:0] == CmdDecode;
  logic [31:0] feature_bytes_q, slot_bytes_q;
  logic [4:0] checking_q;
  assign got_o = checking_q[4];
  always_comb begin
    feature_bytes = '0;
    for (int v = 0; v < 3; v++) begin
      if (entry[0][18+v]) feature_bytes = feature_bytes + ((32'(header_i.feature_units) * Cols) << v);
    end
    if (descriptor_i[0][8+FlagPrediction]) begin
      slot_bytes = 32'(header_i.pred_a_units) * Cols + 32'(header_i.pred_c_units) * (Rows / 2);
    end else begin
      slot_bytes = 32'(header_i.enc_a_units) * Cols + 32'(header_i.enc_c_units) * (Rows / 2);
    end
  end
  always_ff @(posedge clk_i) begin
    feature_bytes_q <= feature_bytes;
    slot_bytes_q <= slot_bytes;
    enc_slot_q <= enc_slot;
    source_slot_q <= source_slot;
    destination_slot_q <= destination_slot;
    checking_q <= stage_reset ? '0 : {checking_q[3:0], got};
  end

  entry_check u_check (
      .clk_i,
      .descriptor_i,
      .entry_i(entry),
      .result_i,
      .result_bytes_i,
      .slot_bytes_i(slot_bytes_q),
      .header_i,
      .feature_bytes_i(feature_bytes_q),
      .enc_slots_i,
      .pred_slots_i,
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
      .mark_enc_read_o(mark_enc_read),
      .mark_source_o(mark_source),
      .mark_destination_o(mark_destination),
      .failure_o(entry_failure_o)
  );

  // An accepted entry: a full step leaves its encoder slot live, a shorter one ended; a prediction step leaves its destination live. Not in the clock
  // in which a soft reset frees the slots of the command in check.
  logic accepts;
  assign accepts = accept_i && !hold_i;
  logic full_step_q, predicts, set_enc, set_pred, set_live, set_ended;
  logic [15:0] set_slot;
  always_ff @(posedge clk_i) full_step_q <= entry[0][20:18] == header_i.vectors;
  assign predicts = descriptor_i[0][7:0] == CmdGreedy || (decodes && entry[0][22:21] != KindNone);
  slot_table #(
      .EncSlots (EncSlots),
      .PredSlots(PredSlots)
  ) u_slots (
      .clk_i,
      .rst_i,
      .enc_slot_i(enc_slot_q),
      .enc_live_o(enc_live),
      .enc_free_o(enc_free),
      .enc_marked_o(enc_marked),
      .source_i(source_slot_q),
      .source_live_o(source_live),
      .source_written_o(source_written),
      .destination_i(destination_slot_q),
      .destination_live_o(destination_live),
      .destination_marked_o(destination_marked),
      .clear_marks_i,
      .mark_enc_i(mark_i && mark_enc),
      .mark_enc_read_i(mark_i && mark_enc_read),
      .mark_source_i(mark_i && mark_source),
      .mark_destination_i(mark_i && mark_destination),
      .set_enc_slot_i(set_enc ? set_slot : enc_slot_q),
      .set_pred_slot_i(set_pred ? set_slot : destination_slot_q),
      .set_enc_i(set_enc || (accepts && encodes)),
      .set_pred_i(set_pred || (accepts && predicts)),
      .live_i(accept_i ? (full_step_q || decodes) : set_live),
      .pred_live_i(accept_i || set_live),
      .ended_i(accept_i ? !full_step_q : set_ended),
      .free_all_i,
      .drop_i(drop_i || drop_written_i),
      .drop_enc_i((drop_i ? drop_enc_i : '0) | (drop_written_i ? enc_written_o : '0)),
      .drop_pred_i((drop_i ? drop_pred_i : '0) | (drop_written_i ? pred_written_o : '0)),
      .enc_written_o,
      .pred_written_o,
      .enc_read_o,
      .pred_read_o,
      .enc_none_o,
      .pred_none_o
  );

  // The work.
  logic send_abort, move_abort;
  assign job_abort_o = send_abort || move_abort;

  entry_sender u_sender (
      .clk_i,
      .rst_i(stage_reset),
      .start_i(send_start_i),
      .descriptor_i,
      .header_i,
      .done_o(send_done_o),
      .failed_o(send_failed_o),
      .get_o(send_get),
      .index_o(send_index),
      .got_i(got),
      .entry_i(entry),
      .read_valid_o(send_read_o),
      .read_ready_i(send_read_ready_i),
      .read_o(send_o),
      .data_taken_i,
      .data_i,
      .error_i,
      .error_addr_i,
      .job_valid_o(send_job_valid_o),
      .job_ready_i(send_job_ready_i),
      .job_o(send_job_o),
      .job_done_i(send_job_done_i),
      .job_abort_o(send_abort),
      .features_free_i,
      .entry_valid_o,
      .entry_ready_i,
      .entry_o
  );

  slot_commands u_commands (
      .clk_i,
      .rst_i(stage_reset),
      .start_i(slots_start_i),
      .descriptor_i,
      .header_i,
      .done_o(slots_done_o),
      .failure_o(slots_failure_o),
      .index_o(slots_index_o),
      .get_o(slots_get),
      .got_i(got),
      .entry_i(entry),
      .read_valid_o(move_read_o),
      .read_ready_i(move_read_ready_i),
      .read_o(move_o),
      .error_i,
      .error_addr_i,
      .job_valid_o(move_job_valid_o),
      .job_ready_i(move_job_ready_i),
      .job_o(move_job_o),
      .job_done_i(move_job_done_i),
      .job_abort_o(move_abort),
      .first_live_i(descriptor_i[0][8+FlagPrediction] ? source_live : enc_live),
      .first_free_i(descriptor_i[0][8+FlagPrediction] ? !source_live : enc_free),
      .set_enc_o(set_enc),
      .set_pred_o(set_pred),
      .set_slot_o(set_slot),
      .set_live_o(set_live),
      .set_ended_o(set_ended)
  );

  logic unused;
  assign unused = &{1'b0, store_addr_i};  // a command has no more entries than the store holds
endmodule
