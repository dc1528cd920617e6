// SPDX-License-Identifier: Apache-2.0
// The checks of one entry, in the order of docs/isa.md, section 6, and which slots it marks. What comes in must have stood for five clocks, feature_bytes_i
// for four, and what was looked up for three, when failure and marks are read; the slots to be looked up are those of entry_i in the same clock.
module entry_check
  import gharial_pkg::*;
  import host_pkg::*;
(
    input logic clk_i,

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
  logic reset, no_joint, prediction_q, greedy_q, decodes_q, encodes_q, slots_q, copies_q, saves_q, restores_q;
  assign operation = descriptor_i[0][7:0];
  assign kind = entry_i[0][22:21];
  assign vectors = entry_i[0][20:18];
  assign reset = entry_i[0][16];
  assign no_joint = entry_i[0][23];
  always_ff @(posedge clk_i) begin  // the descriptor is there long before its entries
    prediction_q <= descriptor_i[0][8+FlagPrediction];
    greedy_q <= operation == CmdGreedy;
    decodes_q <= operation == CmdDecode;
    encodes_q <= operation == CmdEncode || operation == CmdGreedy;
    slots_q <= on_slots(operation);
    copies_q <= operation == CmdCopy;
    saves_q <= operation == CmdSave;
    restores_q <= operation == CmdRestore;
  end

  // Slot commands use the encoder look-up for encoder slots, and source and destination for prediction slots: a copy's
  // first slot is the source, every other command's first slot the destination.
  logic [15:0] first, second;
  assign first  = entry_i[0][15:0];
  assign second = entry_i[1][15:0];
  always_comb begin
    enc_slot_o = first;
    source_o = entry_i[1][15:0];
    destination_o = decodes_q ? entry_i[1][31:16] : entry_i[3][15:0];
    if (slots_q) begin
      source_o = first;
      destination_o = copies_q ? second : first;
    end
  end

  // Sums, then comparisons, then the first that fails, then what is told of it. Sums have more bits than addresses: they do not wrap.
  logic [64:0] features_q, moved_q;
  logic [65:0] result_end_q, features_end_q, moved_end_q;
  logic bad_result_q, bad_features_q, bad_moved_q;
  always_ff @(posedge clk_i) begin
    features_q <= {1'b0, descriptor_i[11], descriptor_i[10]} + 65'(entry_i[1]);
    moved_q <= {1'b0, descriptor_i[5], descriptor_i[4]} + 65'(entry_i[2]);
    result_end_q <= 66'(result_i) + 66'(result_bytes_i);
    features_end_q <= 66'(features_q) + 66'(feature_bytes_i);
    moved_end_q <= 66'(moved_q) + 66'(slot_bytes_i);
    bad_result_q <= result_i[1:0] != '0 || result_end_q > 66'(mem_size_i);
    bad_features_q <= features_q[1:0] != '0 || features_end_q > 66'(mem_size_i);
    bad_moved_q <= moved_q[1:0] != '0 || moved_end_q > 66'(mem_size_i);
  end

  logic [15:0] own_slots;  // of the kind that a slot command is for
  logic
      first_beyond_q,
      first_beyond_enc_q,
      second_beyond_q,
      source_beyond_q,
      destination_beyond_q,
      same_q,
      token_beyond_q;
  logic bad_encode_q, bad_decode_q, bad_slot_q, high_1_q, high_3_q, word_3_q;
  logic enc_live_q, enc_free_q, enc_marked_q, source_live_q, source_written_q, destination_live_q, destination_marked_q;
  assign own_slots = prediction_q ? pred_slots_i : enc_slots_i;
  always_ff @(posedge clk_i) begin
    first_beyond_q <= first >= own_slots;
    first_beyond_enc_q <= first >= enc_slots_i;
    second_beyond_q <= second >= own_slots;
    source_beyond_q <= source_o >= pred_slots_i;
    destination_beyond_q <= destination_o >= pred_slots_i;
    same_q <= source_o == destination_o;
    bad_encode_q <= entry_i[0][31:21] != '0 || vectors == '0 || vectors > header_i.vectors;
    bad_decode_q <= entry_i[0][31:24] != '0 || entry_i[0][20:18] != '0 || reset || kind > KindStart;
    bad_slot_q <= entry_i[0][31:16] != '0;
    high_1_q <= entry_i[1][31:16] != '0;
    high_3_q <= entry_i[3][31:16] != '0;
    word_3_q <= entry_i[3] != '0;
    token_beyond_q <= entry_i[2] >= 32'(header_i.tokens);
    enc_live_q <= enc_live_i;
    enc_free_q <= enc_free_i;
    enc_marked_q <= enc_marked_i;
    source_live_q <= source_live_i;
    source_written_q <= source_written_i;
    destination_live_q <= destination_live_i;
    destination_marked_q <= destination_marked_i;
  end

  // The detail that is told.
  typedef enum logic [3:0] {
    Word0,
    Word1,
    Word2,
    Word3,
    First,
    Second,
    Source,
    Destination,
    Features,
    Moved,
    Result
  } detail_e;
  typedef struct packed {
    fault_e  fault;
    detail_e detail;
  } verdict_t;

  verdict_t verdict, verdict_q;
  logic mark_enc, mark_enc_read, mark_source, mark_destination;
  logic [31:0] detail;
  always_ff @(posedge clk_i) begin
    verdict_q <= verdict;
    failure_o <= '{fault: verdict_q.fault, unit: UnitSequencer, detail: detail};
    if (verdict_q.fault == FaultNone) failure_o <= NoFailure;
    if (verdict_q.fault == FaultAddress) failure_o.unit <= UnitHost;
    {mark_enc_o, mark_enc_read_o} <= {mark_enc, mark_enc_read};
    {mark_source_o, mark_destination_o} <= {mark_source, mark_destination};
  end

  always_comb begin
    unique case (verdict_q.detail)
      First: detail = 32'(first);
      Second: detail = 32'(second);
      Source: detail = 32'(source_o);
      Destination: detail = 32'(destination_o);
      Features: detail = features_q[31:0];
      Moved: detail = moved_q[31:0];
      Result: detail = result_i[31:0];
      default: detail = 32'(verdict_q.detail);  // the number of a word
    endcase
  end

  always_comb begin
    verdict = '{fault: FaultNone, detail: Word0};
    {mark_enc, mark_enc_read, mark_source, mark_destination} = '0;
    if (encodes_q) begin
      mark_enc = 1'b1;
      mark_destination = greedy_q;
      if (bad_encode_q) verdict = '{FaultBadEntry, Word0};
      else if (greedy_q ? high_3_q : word_3_q) verdict = '{FaultBadEntry, Word3};
      else if (first_beyond_enc_q || (!reset && !enc_live_q)) verdict = '{FaultBadSlot, First};
      else if (greedy_q && (destination_beyond_q || (!reset && !destination_live_q)))
        verdict = '{FaultBadSlot, Destination};
      else if (enc_marked_q) verdict = '{FaultHazard, First};
      else if (greedy_q && destination_marked_q) verdict = '{FaultHazard, Destination};
      else if (bad_features_q) verdict = '{FaultAddress, Features};
      else if (greedy_q && bad_result_q) verdict = '{FaultAddress, Result};
    end else if (decodes_q) begin
      mark_enc_read = !no_joint;
      mark_source = kind == KindToken && !same_q;
      mark_destination = 1'b1;
      if (bad_decode_q) verdict = '{FaultBadEntry, Word0};
      else if (kind == KindNone && !same_q) verdict = '{FaultBadEntry, Word1};
      else if (kind == KindToken && token_beyond_q) verdict = '{FaultBadEntry, Word2};
      else if (word_3_q) verdict = '{FaultBadEntry, Word3};
      else if (!no_joint && (first_beyond_enc_q || enc_free_q)) verdict = '{FaultBadSlot, First};
      else if (kind != KindStart && (source_beyond_q || !source_live_q)) verdict = '{FaultBadSlot, Source};
      else if (destination_beyond_q) verdict = '{FaultBadSlot, Destination};
      else if (mark_source && source_written_q) verdict = '{FaultHazard, Source};
      else if (destination_marked_q) verdict = '{FaultHazard, Destination};
      else if (!no_joint && bad_result_q) verdict = '{FaultAddress, Result};
    end else begin
      mark_source = copies_q || saves_q;
      mark_destination = !saves_q;
      if (bad_slot_q) verdict = '{FaultBadEntry, Word0};
      else if (high_1_q) verdict = '{FaultBadEntry, Word1};
      else if (word_3_q) verdict = '{FaultBadEntry, Word3};
      else if (first_beyond_q) verdict = '{FaultBadSlot, First};
      else if (copies_q && (prediction_q ? !source_live_q : enc_free_q)) verdict = '{FaultBadSlot, First};
      else if (saves_q && (prediction_q ? !source_live_q : !enc_live_q)) verdict = '{FaultBadSlot, First};
      else if (copies_q && second_beyond_q) verdict = '{FaultBadSlot, Second};
      else if (mark_source && source_written_q) verdict = '{FaultHazard, First};
      else if (mark_destination && destination_marked_q) verdict = '{FaultHazard, Destination};
      else if (saves_q || restores_q) begin
        if (bad_moved_q) verdict = '{FaultAddress, Moved};
      end
    end
  end

  logic unused;
  assign unused = &{1'b0, descriptor_i, header_i};  // fields of other checks and of other blocks
endmodule
