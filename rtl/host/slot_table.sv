// SPDX-License-Identifier: Apache-2.0
// What each slot is: free, live, ended. And which slots the entries of the command in check read and write, for hazards.
module slot_table #(
    parameter int unsigned EncSlots  = 16,
    parameter int unsigned PredSlots = 64
) (
    input logic clk_i,
    input logic rst_i,

    // Look-up, same clock; numbers within the slots there are.
    input  logic [15:0] enc_slot_i,
    output logic        enc_live_o,
    output logic        enc_free_o,
    output logic        enc_marked_o,         // an earlier entry of the command has this slot
    input  logic [15:0] source_i,
    output logic        source_live_o,
    output logic        source_written_o,     // an earlier entry writes it
    input  logic [15:0] destination_i,
    output logic        destination_live_o,
    output logic        destination_marked_o, // an earlier entry reads or writes it

    // Marks of an entry.
    input logic clear_marks_i,
    input logic mark_enc_i,
    input logic mark_enc_read_i,
    input logic mark_source_i,
    input logic mark_destination_i,

    // Changes.
    input logic [         15:0] set_enc_slot_i,
    input logic [         15:0] set_pred_slot_i,
    input logic                 set_enc_i,        // this slot becomes...
    input logic                 set_pred_i,       // this prediction slot becomes...
    input logic                 live_i,
    input logic                 pred_live_i,      // the same of the prediction slot
    input logic                 ended_i,          // encoder slots: ended, with live_i low
    input logic                 free_all_i,
    input logic                 drop_i,           // free the slots of these maps
    input logic [ EncSlots-1:0] drop_enc_i,
    input logic [PredSlots-1:0] drop_pred_i,

    output logic [ EncSlots-1:0] enc_written_o,   // of the command in check
    output logic [PredSlots-1:0] pred_written_o,
    output logic [ EncSlots-1:0] enc_read_o,
    output logic [PredSlots-1:0] pred_read_o,
    output logic [ EncSlots-1:0] enc_none_o,      // free slots
    output logic [PredSlots-1:0] pred_none_o
);
  localparam int unsigned EncW = $clog2(EncSlots);
  localparam int unsigned PredW = $clog2(PredSlots);

  // Slot commands mark slots of either kind as if they were of the prediction network.
  if (PredSlots < EncSlots) begin : gen_check
    $error("%m: PredSlots must be at least EncSlots");
  end

  logic [EncSlots-1:0] enc_live_q, enc_ended_q, enc_mark_q, enc_read_q;
  logic [PredSlots-1:0] pred_live_q, read_q, written_q;
  logic [EncW-1:0] enc, set_enc;
  logic [PredW-1:0] source, destination, set_pred;

  assign enc = enc_slot_i[EncW-1:0];
  assign set_enc = set_enc_slot_i[EncW-1:0];
  assign set_pred = set_pred_slot_i[PredW-1:0];
  assign source = source_i[PredW-1:0];
  assign destination = destination_i[PredW-1:0];
  assign enc_live_o = enc_live_q[enc];
  assign enc_free_o = !enc_live_q[enc] && !enc_ended_q[enc];
  assign enc_marked_o = enc_mark_q[enc];
  assign source_live_o = pred_live_q[source];
  assign source_written_o = written_q[source];
  assign destination_live_o = pred_live_q[destination];
  assign destination_marked_o = written_q[destination] || read_q[destination];
  assign enc_written_o = enc_mark_q;
  assign pred_written_o = written_q;
  assign enc_read_o = enc_read_q;
  assign pred_read_o = read_q;
  assign enc_none_o = ~(enc_live_q | enc_ended_q);
  assign pred_none_o = ~pred_live_q;

  always_ff @(posedge clk_i) begin
    if (mark_enc_i) enc_mark_q[enc] <= 1'b1;
    if (mark_enc_read_i) enc_read_q[enc] <= 1'b1;
    if (mark_source_i) read_q[source] <= 1'b1;
    if (mark_destination_i) written_q[destination] <= 1'b1;
    if (clear_marks_i) begin
      enc_mark_q <= '0;
      enc_read_q <= '0;
      read_q <= '0;
      written_q <= '0;
    end

    // A younger command's slots are set behind the drop: what an older one loses in the same clock is another's.
    if (drop_i) begin
      enc_live_q  <= enc_live_q & ~drop_enc_i;
      enc_ended_q <= enc_ended_q & ~drop_enc_i;
      pred_live_q <= pred_live_q & ~drop_pred_i;
    end
    if (set_enc_i) begin
      enc_live_q[set_enc]  <= live_i;
      enc_ended_q[set_enc] <= ended_i;
    end
    if (set_pred_i) pred_live_q[set_pred] <= pred_live_i;
    if (rst_i || free_all_i) begin
      enc_live_q  <= '0;
      enc_ended_q <= '0;
      pred_live_q <= '0;
    end
  end

  logic unused;
  assign unused = &{1'b0, enc_slot_i, source_i, destination_i, set_enc_slot_i, set_pred_slot_i};  // numbers beyond the slots there are are refused first
endmodule
