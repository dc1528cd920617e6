// SPDX-License-Identifier: Apache-2.0
// The checks of one entry, in the order of docs/isa.md, section 6, and which slots it marks. Combinational.
module entry_check
  import gharial_pkg::*;
  import host_pkg::*;
(
    input descriptor_t         descriptor_i,
    input entry_words_t        entry_i,
    input logic         [64:0] result_i,         // address of the entry's result
    input logic         [31:0] result_bytes_i,
    input logic         [31:0] slot_bytes_i,     // of a slot of the command's kind
    input header_t             header_i,
    input logic         [31:0] feature_bytes_i,  // of the entry's vectors
    input logic         [15:0] enc_slots_i,
    input logic         [15:0] pred_slots_i,
    input logic         [63:0] mem_size_i,

    // Slot table.
    input logic enc_live_i,
    input logic enc_free_i,
    input logic enc_marked_i,
    input logic source_live_i,
    input logic source_written_i,
    input logic destination_live_i,
    input logic destination_marked_i,

    // The entry's slots, for look-up.
    output logic     [15:0] enc_slot_o,
    output logic     [15:0] source_o,
    output logic     [15:0] destination_o,
    output logic            mark_enc_o,          // written
    output logic            mark_enc_read_o,
    output logic            mark_source_o,
    output logic            mark_destination_o,
    output failure_t        failure_o
);
  logic [7:0] operation;
  logic [1:0] kind;
  logic [2:0] vectors;
  logic reset, no_joint, prediction, greedy, decodes, encodes, slots, copies, saves;
  assign operation = descriptor_i[0][7:0];
  assign prediction = descriptor_i[0][8+FlagPrediction];
  assign kind = entry_i[0][22:21];
  assign vectors = entry_i[0][20:18];
  assign reset = entry_i[0][16];
  assign no_joint = entry_i[0][23];
  assign greedy = operation == CmdGreedy;
  assign decodes = operation == CmdDecode;
  assign encodes = operation == CmdEncode || greedy;
  assign slots = on_slots(operation);
  assign copies = operation == CmdCopy;
  assign saves = operation == CmdSave;

  // Slot commands use the encoder look-up for encoder slots, and source and destination for prediction slots: a copy's
  // first slot is the source, every other command's first slot the destination.
  logic [15:0] first, second;
  assign first  = entry_i[0][15:0];
  assign second = entry_i[1][15:0];
  always_comb begin
    enc_slot_o = first;
    source_o = entry_i[1][15:0];
    destination_o = decodes ? entry_i[1][31:16] : entry_i[3][15:0];
    if (slots) begin
      source_o = first;
      destination_o = copies ? second : first;
    end
  end

  function automatic failure_t refuse(input fault_e fault, input logic [31:0] detail);
    return '{fault: fault, unit: (fault == FaultAddress) ? UnitHost : UnitSequencer, detail: detail};
  endfunction

  // One bit more than addresses have: they do not wrap.
  logic [64:0] features, moved;
  assign features = {1'b0, descriptor_i[11], descriptor_i[10]} + 65'(entry_i[1]);
  assign moved = {1'b0, descriptor_i[5], descriptor_i[4]} + 65'(entry_i[2]);

  logic bad_result, bad_features, bad_moved;
  assign bad_result = result_i[1:0] != '0 || !in_memory(result_i, result_bytes_i, mem_size_i);
  assign bad_features = features[1:0] != '0 || !in_memory(features, feature_bytes_i, mem_size_i);
  assign bad_moved = moved[1:0] != '0 || !in_memory(moved, slot_bytes_i, mem_size_i);

  always_comb begin
    failure_o = NoFailure;
    {mark_enc_o, mark_enc_read_o, mark_source_o, mark_destination_o} = '0;
    if (encodes) begin
      mark_enc_o = 1'b1;
      mark_destination_o = greedy;
      if (entry_i[0][31:21] != '0 || vectors == '0 || vectors > header_i.vectors)
        failure_o = refuse(FaultBadEntry, 32'd0);
      else if (greedy ? entry_i[3][31:16] != '0 : entry_i[3] != '0) failure_o = refuse(FaultBadEntry, 32'd3);
      else if (first >= enc_slots_i || (!reset && !enc_live_i)) failure_o = refuse(FaultBadSlot, 32'(first));
      else if (greedy && (destination_o >= pred_slots_i || (!reset && !destination_live_i)))
        failure_o = refuse(FaultBadSlot, 32'(destination_o));
      else if (enc_marked_i) failure_o = refuse(FaultHazard, 32'(first));
      else if (greedy && destination_marked_i) failure_o = refuse(FaultHazard, 32'(destination_o));
      else if (bad_features) failure_o = refuse(FaultAddress, features[31:0]);
      else if (greedy && bad_result) failure_o = refuse(FaultAddress, result_i[31:0]);
    end else if (decodes) begin
      mark_enc_read_o = !no_joint;
      mark_source_o = kind == KindToken && source_o != destination_o;
      mark_destination_o = 1'b1;
      if (entry_i[0][31:24] != '0 || entry_i[0][20:18] != '0 || reset || kind > KindStart)
        failure_o = refuse(FaultBadEntry, 32'd0);
      else if (kind == KindNone && source_o != destination_o) failure_o = refuse(FaultBadEntry, 32'd1);
      else if (kind == KindToken && entry_i[2] >= 32'(header_i.tokens)) failure_o = refuse(FaultBadEntry, 32'd2);
      else if (entry_i[3] != '0) failure_o = refuse(FaultBadEntry, 32'd3);
      else if (!no_joint && (first >= enc_slots_i || enc_free_i)) failure_o = refuse(FaultBadSlot, 32'(first));
      else if (kind != KindStart && (source_o >= pred_slots_i || !source_live_i))
        failure_o = refuse(FaultBadSlot, 32'(source_o));
      else if (destination_o >= pred_slots_i) failure_o = refuse(FaultBadSlot, 32'(destination_o));
      else if (mark_source_o && source_written_i) failure_o = refuse(FaultHazard, 32'(source_o));
      else if (destination_marked_i) failure_o = refuse(FaultHazard, 32'(destination_o));
      else if (!no_joint && bad_result) failure_o = refuse(FaultAddress, result_i[31:0]);
    end else begin
      mark_source_o = copies || saves;
      mark_destination_o = !saves;
      if (entry_i[0][31:16] != '0) failure_o = refuse(FaultBadEntry, 32'd0);
      else if (entry_i[1][31:16] != '0) failure_o = refuse(FaultBadEntry, 32'd1);
      else if (entry_i[3] != '0) failure_o = refuse(FaultBadEntry, 32'd3);
      else if (first >= (prediction ? pred_slots_i : enc_slots_i)) failure_o = refuse(FaultBadSlot, 32'(first));
      else if (copies && (prediction ? !source_live_i : enc_free_i)) failure_o = refuse(FaultBadSlot, 32'(first));
      else if (saves && (prediction ? !source_live_i : !enc_live_i)) failure_o = refuse(FaultBadSlot, 32'(first));
      else if (copies && second >= (prediction ? pred_slots_i : enc_slots_i))
        failure_o = refuse(FaultBadSlot, 32'(second));
      else if (mark_source_o && source_written_i) failure_o = refuse(FaultHazard, 32'(first));
      else if (mark_destination_o && destination_marked_i) failure_o = refuse(FaultHazard, 32'(destination_o));
      else if (saves || operation == CmdRestore) begin
        if (bad_moved) failure_o = refuse(FaultAddress, moved[31:0]);
      end
    end
  end

  logic unused;
  assign unused = &{1'b0, descriptor_i, header_i};  // fields of other checks and of other blocks
endmodule
