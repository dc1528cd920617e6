// SPDX-License-Identifier: Apache-2.0
// E stage: runs section encode for the entries that want it, and passes all entries on to the D stage in order.
//
// A run is started as soon as the thread takes it, while results of the run before are outstanding. An entry waits while an older one that
// has not left the D stage reads the joint_enc bank that it would write, and one that begins its slot anew while either bank is read.
module encode_control
  import gharial_pkg::*;
  import sequencer_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    input header_t header_i,
    input logic [15:0] scratch_bank_units_i,  // from scratch bank 0 to bank 1

    input  logic   entry_valid_i,
    output logic   entry_ready_o,
    input  entry_t entry_i,

    // The slot engine.
    output logic zero_valid_o,
    output logic [ActAddrW-1:0] zero_act_o,
    output logic [CellAddrW-1:0] zero_cell_o,
    input logic zero_done_i,

    // The thread.
    output logic run_valid_o,
    input logic run_ready_i,
    output run_t run_o,
    input logic run_done_i,
    input fault_e run_fault_i,
    input logic [31:0] run_detail_i,

    // To the D stage, with a fault if the entry failed here.
    output logic   passed_valid_o,
    input  logic   passed_ready_i,
    output entry_t passed_o,

    // What the D stage works on.
    input logic   busy_i,
    input entry_t busy_entry_i,

    output logic features_free_o,  // at most one entry's features are still to be read: the other scratch bank may be filled
    output logic waiting_o,
    output logic idle_o
);
  typedef enum logic [2:0] {
    Take,
    Look,       // for conflicts
    ZeroStart,
    Zero,
    Run
  } state_e;

  (* fsm_encoding = "one-hot" *)
  state_e state_q;
  entry_t entry_q;

  // Entries on their way: [0] is the oldest.
  typedef struct packed {
    logic   valid;
    logic   runs;   // waits for its run to be done
    entry_t entry;
  } way_t;
  way_t way_q  [2];
  way_t pushed;
  logic push, pop, full;

  function automatic logic runs_encode(input fault_e fault, input command_e operation);
    return fault == FaultNone && (operation == CmdEncode || operation == CmdGreedy);
  endfunction

  // Does an older entry, yet to be decoded, read the bank that this one writes? Or the slot that this one zeroes?
  function automatic logic reads_joint_enc(input command_e operation, input logic no_joint);
    return (operation == CmdGreedy || operation == CmdDecode) && !no_joint;
  endfunction
  logic behind[3], slot_read;
  assign slot_read = busy_i && reads_joint_enc(
      busy_entry_i.operation, busy_entry_i.no_joint
  ) && busy_entry_i.enc_cell == entry_q.enc_cell;
  assign behind[0] = slot_read && busy_entry_i.bank == entry_q.bank;
  for (genvar i = 0; i < 2; i++) begin : gen_behind
    assign behind[i+1] = way_q[i].valid && reads_joint_enc(
        way_q[i].entry.operation, way_q[i].entry.no_joint
    ) && {way_q[i].entry.enc_cell, way_q[i].entry.bank} == {entry_q.enc_cell, entry_q.bank};
  end

  logic wants_q, conflict_q, slot_read_q, zero_may_q;  // a conflict ends, but none comes up while the entry waits

  assign full = way_q[1].valid;
  assign entry_ready_o = state_q == Take;
  assign run_valid_o = state_q == Run && wants_q && !conflict_q && !full;
  assign push = state_q == Run && !full && (!wants_q || (run_valid_o && run_ready_i));
  assign pushed = '{valid: 1'b1, runs: wants_q, entry: entry_q};

  assign run_o = '{
          section: SectionEncode,
          vectors: entry_q.vectors,
          scratch: entry_q.scratch_bank ? scratch_bank_units_i : '0,
          source_act: entry_q.enc_act,
          destination_act: entry_q.enc_act,
          source_cell: entry_q.enc_cell,
          destination_cell: entry_q.enc_cell,
          i16_cell: entry_q.enc_cell + header_i.joint_enc_unit + (entry_q.bank ? header_i.joint_enc_units : '0),
          joint_enc: '0,
          joint_pred: '0,
          token: '0,
          zero_token: 1'b0
      };

  assign zero_valid_o = state_q == Zero;
  assign zero_act_o = entry_q.enc_act;
  assign zero_cell_o = entry_q.enc_cell;

  assign passed_valid_o = way_q[0].valid && !way_q[0].runs;
  assign passed_o = way_q[0].entry;
  assign pop = passed_valid_o && passed_ready_i;

  logic [1:0] unread;
  assign unread = 2'(state_q != Take && wants_q) + 2'(way_q[0].valid && way_q[0].runs) + 2'(way_q[1].valid && way_q[1].runs);
  assign features_free_o = unread <= 2'd1;
  assign waiting_o = (state_q == Run && wants_q && conflict_q) || (state_q == ZeroStart && slot_read_q);
  assign idle_o = state_q == Take && !way_q[0].valid;

  // The run that is done is the oldest that runs.
  way_t done_way[2];
  logic first_runs;
  assign first_runs = way_q[0].valid && way_q[0].runs;
  always_comb begin
    done_way = way_q;
    for (int i = 0; i < 2; i++) begin
      if (run_done_i && (i == 0) == first_runs) begin
        done_way[i].runs = 1'b0;
        if (run_fault_i != FaultNone) begin
          done_way[i].entry.fault  = run_fault_i;
          done_way[i].entry.unit   = UnitSequencer;
          done_way[i].entry.detail = run_detail_i;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    conflict_q <= behind[0] || behind[1] || behind[2];
    slot_read_q <= slot_read;
    zero_may_q <= !way_q[0].valid && !slot_read;
    way_q <= done_way;
    if (pop) begin
      way_q[0] <= done_way[1];
      way_q[1].valid <= 1'b0;
      if (push) begin
        if (done_way[1].valid) way_q[1] <= pushed;
        else way_q[0] <= pushed;
      end
    end else if (push) begin
      way_q[way_q[0].valid] <= pushed;
    end

    unique case (state_q)
      Take: begin
        entry_q <= entry_i;
        wants_q <= runs_encode(entry_i.fault, entry_i.operation);
        if (entry_valid_i) state_q <= Look;
      end
      Look: state_q <= (wants_q && entry_q.enc_reset) ? ZeroStart : Run;
      ZeroStart: if (zero_may_q) state_q <= Zero;
      Zero: if (zero_done_i) state_q <= Run;
      default: if (push) state_q <= Take;
    endcase

    if (rst_i) begin
      state_q <= Take;
      way_q[0].valid <= 1'b0;
      way_q[1].valid <= 1'b0;
    end
  end

  logic unused;
  assign unused = &{1'b0, header_i, busy_entry_i};  // fields of other blocks
endmodule
