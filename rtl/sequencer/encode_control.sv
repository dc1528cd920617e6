// SPDX-License-Identifier: Apache-2.0
// E stage: runs section encode for the entries that want it, and passes all entries on to the D stage in order.
//
// A run is started as soon as the thread takes it, while results of the run before are outstanding. An entry waits while an older one that has not left the D
// stage reads the joint_enc bank that it would write.
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
    output logic          passed_valid_o,
    input  logic          passed_ready_i,
    output entry_t        passed_o,
    output fault_e        passed_fault_o,
    output logic   [31:0] passed_detail_o,

    // What the D stage works on.
    input logic   busy_i,
    input entry_t busy_entry_i,

    output logic features_free_o,  // no run that may still read a scratch bank, other than the one just taken
    output logic waiting_o,
    output logic idle_o
);
  typedef enum logic [1:0] {
    Take,
    ZeroStart,
    Zero,
    Run
  } state_e;

  state_e state_q;
  entry_t entry_q;

  // Entries on their way: [0] is the oldest.
  typedef struct packed {
    logic valid;
    logic runs;  // waits for its run to be done
    fault_e fault;
    logic [31:0] detail;
    entry_t entry;
  } way_t;
  way_t way_q[2];
  way_t pushed;
  logic push, pop, full;

  function automatic logic reads_bank(input entry_t older, input entry_t entry);
    return older.operation != CmdEncode && !older.no_joint && older.enc_cell == entry.enc_cell && older.bank == entry.bank;
  endfunction

  logic wants, conflict;
  assign wants = entry_q.operation != CmdDecode;
  assign conflict = (busy_i && reads_bank(busy_entry_i, entry_q)) || (way_q[0].valid && reads_bank(way_q[0].entry, entry_q)) ||
      (way_q[1].valid && reads_bank(way_q[1].entry, entry_q));

  assign full = way_q[1].valid;
  assign entry_ready_o = state_q == Take;
  assign run_valid_o = state_q == Run && wants && !conflict && !full;
  assign push = state_q == Run && !full && (!wants || (run_valid_o && run_ready_i));
  assign pushed = '{valid: 1'b1, runs: wants, fault: FaultNone, detail: '0, entry: entry_q};

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
  assign passed_fault_o = way_q[0].fault;
  assign passed_detail_o = way_q[0].detail;
  assign pop = passed_valid_o && passed_ready_i;

  assign features_free_o = !way_q[1].valid;
  assign waiting_o = state_q == Run && wants && conflict;
  assign idle_o = state_q == Take && !way_q[0].valid;

  // The run that is done is the oldest that runs.
  way_t done_way[2];
  always_comb begin
    done_way = way_q;
    if (run_done_i) begin
      if (way_q[0].valid && way_q[0].runs) begin
        done_way[0].runs = 1'b0;
        done_way[0].fault = run_fault_i;
        done_way[0].detail = run_detail_i;
      end else begin
        done_way[1].runs = 1'b0;
        done_way[1].fault = run_fault_i;
        done_way[1].detail = run_detail_i;
      end
    end
  end

  always_ff @(posedge clk_i) begin
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
        if (entry_valid_i) state_q <= (entry_i.operation != CmdDecode && entry_i.enc_reset) ? ZeroStart : Run;
      end
      ZeroStart: if (!way_q[0].valid) state_q <= Zero;
      Zero: if (zero_done_i) state_q <= Run;
      default: if (push) state_q <= Take;
    endcase

    if (rst_i) begin
      state_q <= Take;
      way_q[0].valid <= 1'b0;
      way_q[1].valid <= 1'b0;
    end
  end
endmodule
