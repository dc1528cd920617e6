// SPDX-License-Identifier: Apache-2.0
// Walks through the entries of a command and does to their slots what the walk is for (slot_pkg); with Checks, also the check of entries.
module entry_walker
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
  import slot_pkg::*;
#(
    parameter bit Checks = 1'b0,
    parameter logic [63:0] MemBytes = 64'd16384
) (
    input logic clk_i,
    input logic rst_i,

    input  logic            start_i,    // one clock; what follows stays until done
    input  walk_e           walk_i,
    input  listed_t         listed_i,
    output logic            done_o,     // one clock
    output failure_t        failure_o,  // of a check, or a look, which ends there
    output logic     [15:0] index_o,    // the entry at fault

    input header_t            header_i,
    input logic        [15:0] enc_slots_i,
    input logic        [15:0] pred_slots_i,
    input descriptor_t        descriptor_i,   // of a check
    input logic        [31:0] result_bytes_i,

    output logic                entry_valid_o,
    input  logic                entry_ready_i,
    output logic         [15:0] entry_index_o,
    input  logic                entry_got_i,
    input  entry_words_t        entry_i,

    output logic       slot_valid_o,
    input  logic       slot_ready_i,
    output slot_edit_t slot_o,
    input  logic       slot_told_i,
    input  slot_t      slot_i
);
  typedef enum logic [3:0] {
    Idle,
    Get,
    Got,
    Plan,
    Ask,
    Told,
    Role,
    Settle,
    Next,
    Done
  } state_e;

  state_e state_q;
  entry_words_t entry_q;
  logic [15:0] index_q;
  logic [1:0] role_q;
  logic [2:0] settle_q;
  logic mark_q;  // a check: the entry is all right
  plan_t plan_q;
  slot_t seen_q[3];
  failure_t failure_q, check_failure;
  logic [64:0] result_q;
  logic beyond, checks;

  assign checks = Checks && walk_i == WalkCheck;
  assign entry_valid_o = state_q == Get;
  assign entry_index_o = listed_i.first + index_q;
  assign beyond = plan_q.edit.slot >= (plan_q.edit.prediction ? pred_slots_i : enc_slots_i);
  assign slot_valid_o = state_q == Ask && plan_q.valid && !beyond;
  assign slot_o = plan_q.edit;
  assign done_o = state_q == Done;
  assign failure_o = failure_q;
  assign index_o = index_q;

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Idle: begin
        index_q   <= '0;
        failure_q <= NoFailure;
        result_q  <= {1'b0, descriptor_i[5], descriptor_i[4]};
        if (start_i) state_q <= (listed_i.count == '0) ? Done : Get;
      end
      Get: if (entry_ready_i) state_q <= Got;
      Got: begin
        entry_q <= entry_i;
        role_q  <= '0;
        mark_q  <= 1'b0;
        if (entry_got_i) state_q <= Plan;
      end
      Plan: begin
        settle_q <= '0;
        plan_q <= planned(
            mark_q ? WalkMark : walk_i,
            listed_i.operation,
            listed_i.prediction,
            entry_q[0][20:18] == header_i.vectors,
            role_q,
            entry_q
        );
        state_q <= Ask;
      end
      Ask: begin
        if (!plan_q.valid || beyond) state_q <= Role;
        else if (slot_ready_i) state_q <= Told;
      end
      Told: begin
        if (!mark_q) seen_q[role_q] <= slot_i;
        if (slot_told_i) begin
          state_q <= Role;
          if (walk_i == WalkLook && slot_i.lost) begin
            failure_q <= '{fault: FaultBadSlot, unit: UnitSequencer, detail: 32'(plan_q.edit.slot)};
            state_q   <= Done;
          end
        end
      end
      Role: begin
        role_q  <= role_q + 2'd1;
        state_q <= Plan;
        if (role_q == 2'd2) state_q <= (checks && !mark_q) ? Settle : Next;
      end
      Settle: begin
        settle_q <= settle_q + 3'd1;
        role_q   <= '0;
        if (settle_q == 3'd5) begin
          mark_q  <= 1'b1;
          state_q <= Plan;
          if (check_failure.fault != FaultNone) begin
            failure_q <= check_failure;
            state_q   <= Done;
          end
        end
      end
      Next: begin
        index_q  <= index_q + 16'd1;
        result_q <= result_q + 65'(descriptor_i[9]);
        state_q  <= (index_q + 16'd1 == listed_i.count) ? Done : Get;
      end
      default: state_q <= Idle;
    endcase
    if (rst_i) state_q <= Idle;
  end

  if (Checks) begin : gen_check
    logic [31:0] feature_bytes, feature_bytes_q, slot_bytes_q;
    always_comb begin
      feature_bytes = '0;
      for (int v = 0; v < 3; v++) begin
        if (entry_q[0][18+v]) feature_bytes = feature_bytes + ((32'(header_i.feature_units) * Cols) << v);
      end
    end
    always_ff @(posedge clk_i) begin
      feature_bytes_q <= feature_bytes;
      if (listed_i.prediction)
        slot_bytes_q <= 32'(header_i.pred_a_units) * Cols + 32'(header_i.pred_c_units) * (Rows / 2);
      else slot_bytes_q <= 32'(header_i.enc_a_units) * Cols + 32'(header_i.enc_c_units) * (Rows / 2);
    end

    logic [15:0] unused_slot[3];
    logic [3:0] unused_marks;  // they are planned
    entry_check u_check (
        .clk_i,
        .descriptor_i,
        .entry_i(entry_q),
        .result_i(result_q),
        .result_bytes_i,
        .slot_bytes_i(slot_bytes_q),
        .header_i,
        .feature_bytes_i(feature_bytes_q),
        .enc_slots_i,
        .pred_slots_i,
        .mem_size_i(MemBytes),
        .enc_live_i(seen_q[0].live && !seen_q[0].lost),
        .enc_free_i(seen_q[0].lost || (!seen_q[0].live && !seen_q[0].ended)),
        .enc_marked_i(seen_q[0].written),
        .source_live_i(seen_q[1].live && !seen_q[1].lost),
        .source_written_i(seen_q[1].written),
        .destination_live_i(seen_q[2].live && !seen_q[2].lost),
        .destination_marked_i(seen_q[2].written || seen_q[2].read),
        .enc_slot_o(unused_slot[0]),
        .source_o(unused_slot[1]),
        .destination_o(unused_slot[2]),
        .mark_enc_o(unused_marks[0]),
        .mark_enc_read_o(unused_marks[1]),
        .mark_source_o(unused_marks[2]),
        .mark_destination_o(unused_marks[3]),
        .failure_o(check_failure)
    );
    logic unused_check;
    assign unused_check = &{1'b0, unused_slot[0], unused_slot[1], unused_slot[2], unused_marks};
  end else begin : gen_no_check
    assign check_failure = NoFailure;
    logic unused_check;
    assign unused_check = &{1'b0, result_q, result_bytes_i, seen_q[0], seen_q[1], seen_q[2]};
  end

  logic unused;
  assign unused = &{1'b0, descriptor_i, header_i, slot_i};  // fields of other walks and of other blocks
endmodule
