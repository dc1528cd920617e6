// SPDX-License-Identifier: Apache-2.0
// D stage: sections predict and joint, results, and the end of an entry.
//
// A greedy token's scan runs beside the prediction step that follows it; the next joint starts when both are under way or done, so that
// never more than two joints' logits are in use.
module decode_control
  import gharial_pkg::*;
  import sequencer_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    input header_t header_i,

    // From the E stage.
    input  logic   entry_valid_i,
    output logic   entry_ready_o,
    input  entry_t entry_i,
    output logic   busy_o,
    output entry_t busy_entry_o,

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

    // The top-k unit.
    input logic max_valid_i,
    input logic [15:0] max_class_i,
    input logic signed [15:0] max_logit_i,
    output logic scan_valid_o,
    input logic scan_ready_i,
    output logic scan_rank_o,
    output logic scan_fuzzy_o,
    output logic [15:0] scan_temperature_o,
    input logic scan_done_i,
    input logic signed [31:0] lse_i,
    output logic rank_pop_o,
    input logic [15:0] rank_class_i,
    input logic signed [15:0] rank_logit_i,
    output logic class_re_o,
    output logic [15:0] class_o,
    input logic signed [15:0] class_logit_i,

    // Result words, and the end of each entry.
    output logic               result_valid_o,
    input  logic               result_ready_i,
    output logic        [63:0] result_addr_o,
    output logic        [31:0] result_data_o,
    output logic               done_valid_o,
    input  logic               done_ready_i,
    output entry_done_t        done_o
);
  typedef enum logic [3:0] {
    Take,
    Zero,
    PredictRun,
    Predict,
    JointRun,
    Joint,
    Judge,
    Scan,  // DECODE: wait for the scan, then write the result
    Result,
    Header,
    Count,
    Done
  } state_e;

  localparam logic [1:0] ModeTopK = 2'd0;
  localparam logic [1:0] ModeFuzzy = 2'd1;

  (* fsm_encoding = "one-hot" *)
  state_e state_q;
  entry_t entry_q;
  logic [15:0] predictions_q, joints_q, best_q;
  logic signed [15:0] best_logit_q;
  logic [7:0] tokens_q;
  logic max_seen_q, run_seen_q, scan_wanted_q;
  logic greedy, is_blank, capped;

  assign greedy = entry_q.operation == CmdGreedy;
  assign is_blank = best_q == header_i.blank;
  assign capped = tokens_q == entry_q.k;
  assign entry_ready_o = state_q == Take;
  assign busy_o = state_q != Take;
  assign busy_entry_o = entry_q;

  // The start of a sequence works in place on a zeroed slot.
  assign zero_valid_o = state_q == Zero;
  assign zero_act_o = entry_q.destination_act;
  assign zero_cell_o = entry_q.destination_cell;

  logic in_place;
  assign in_place = greedy || entry_q.start;
  assign run_valid_o = state_q == PredictRun || (state_q == JointRun && !scan_wanted_q);
  assign run_o = '{
          section: (state_q == PredictRun) ? SectionPredict : SectionJoint,
          vectors: '0,
          scratch: '0,
          source_act: in_place ? entry_q.destination_act : entry_q.source_act,
          destination_act: entry_q.destination_act,
          source_cell: in_place ? entry_q.destination_cell : entry_q.source_cell,
          destination_cell: entry_q.destination_cell,
          i16_cell: entry_q.destination_cell + header_i.joint_pred_unit,
          joint_enc: entry_q.enc_cell + header_i.joint_enc_unit + (entry_q.bank ? header_i.joint_enc_units : '0),
          joint_pred: entry_q.destination_cell + header_i.joint_pred_unit,
          token: entry_q.token,
          zero_token: entry_q.start
      };

  // Scans, and the writers of results.
  logic word_taken, token_busy, token_valid, token_start, result_valid, result_done, scan_taken;
  logic [63:0] token_addr, result_addr;
  logic [31:0] token_data, result_data;
  assign scan_valid_o = scan_wanted_q && !token_busy;
  assign scan_taken = scan_valid_o && scan_ready_i;
  assign scan_fuzzy_o = !greedy && entry_q.mode == ModeFuzzy;
  assign scan_rank_o = !greedy && (entry_q.mode == ModeTopK || entry_q.mode == ModeFuzzy);
  assign scan_temperature_o = entry_q.temperature;
  assign token_start = scan_taken && greedy;

  token_writer u_token (
      .clk_i,
      .rst_i,
      .start_i(token_start),
      .address_i(entry_q.result + 64'({tokens_q, 3'b000})),
      .token_i(best_q),
      .logit_i(best_logit_q),
      .scan_done_i,
      .lse_i,
      .busy_o(token_busy),
      .valid_o(token_valid),
      .ready_i(word_taken),
      .address_o(token_addr),
      .data_o(token_data)
  );

  decode_result u_result (
      .clk_i,
      .rst_i,
      .start_i(state_q == Scan && scan_done_i),
      .entry_i(entry_q),
      .classes_i(header_i.classes),
      .lse_i,
      .done_o(result_done),
      .rank_pop_o,
      .rank_class_i,
      .rank_logit_i,
      .class_re_o,
      .class_o,
      .class_logit_i,
      .valid_o(result_valid),
      .ready_i(word_taken),
      .address_o(result_addr),
      .data_o(result_data)
  );

  // One writer at a time: tokens while the thread works, the header when all tokens are written. A word waits in a register to be taken.
  logic header_valid;
  assign header_valid = (state_q == Header && !token_busy && !scan_wanted_q) || state_q == Count;
  assign word_taken   = !result_valid_o;
  always_ff @(posedge clk_i) begin
    if (word_taken) begin
      if (token_valid) {result_addr_o, result_data_o} <= {token_addr, token_data};
      else if (result_valid) {result_addr_o, result_data_o} <= {result_addr, result_data};
      else if (state_q == Count) {result_addr_o, result_data_o} <= {entry_q.result + 64'd4, 16'd0, joints_q};
      else {result_addr_o, result_data_o} <= {entry_q.result, 15'd0, capped && !is_blank, 8'd0, tokens_q};
    end
    if (rst_i) result_valid_o <= 1'b0;
    else result_valid_o <= word_taken ? token_valid || result_valid || header_valid : !result_ready_i;
  end

  // After a fault a token may still be written.
  always_ff @(posedge clk_i) begin
    done_valid_o <= state_q == Done && !token_busy && !result_valid_o && !(done_valid_o && done_ready_i);
    if (rst_i) done_valid_o <= 1'b0;
  end
  assign done_o = '{
          last: entry_q.last,
          index: entry_q.index,
          fault: entry_q.fault,
          unit: entry_q.unit,
          detail: entry_q.detail,
          predictions: predictions_q,
          joints: joints_q
      };

  always_ff @(posedge clk_i) begin
    if (max_valid_i) begin
      max_seen_q <= 1'b1;
      best_q <= max_class_i;
      best_logit_q <= max_logit_i;
    end
    if (run_done_i) run_seen_q <= 1'b1;
    if (scan_taken) scan_wanted_q <= 1'b0;

    unique case (state_q)
      Take: begin
        entry_q <= entry_i;
        predictions_q <= '0;
        joints_q <= '0;
        tokens_q <= '0;
        best_q <= header_i.blank;
        scan_wanted_q <= 1'b0;
        if (entry_valid_i) begin
          if (entry_i.fault != FaultNone || !(entry_i.operation == CmdDecode || entry_i.operation == CmdGreedy))
            state_q <= Done;
          else if (entry_i.start) state_q <= Zero;
          else if (entry_i.token_valid) state_q <= PredictRun;
          else state_q <= entry_i.no_joint ? Done : JointRun;
        end
      end
      Zero: if (zero_done_i) state_q <= PredictRun;
      PredictRun: if (run_ready_i) state_q <= Predict;
      Predict: begin
        if (run_done_i) begin
          predictions_q <= predictions_q + 16'd1;
          entry_q.start <= 1'b0;
          state_q <= entry_q.no_joint ? Done : JointRun;
        end
      end
      JointRun: begin
        max_seen_q <= 1'b0;
        run_seen_q <= 1'b0;
        if (run_valid_o && run_ready_i) state_q <= Joint;
      end
      Joint: begin
        if (max_seen_q && run_seen_q) begin
          joints_q <= joints_q + 16'd1;
          state_q  <= Judge;
        end
      end
      Judge: begin
        if (!greedy) begin
          scan_wanted_q <= 1'b1;
          state_q <= Scan;
        end else if (is_blank) begin
          state_q <= Header;
        end else begin
          scan_wanted_q <= 1'b1;
          tokens_q <= tokens_q + 8'd1;
          entry_q.token <= best_q;
          state_q <= PredictRun;
        end
      end
      Scan: if (scan_done_i) state_q <= Result;
      Result: if (result_done) state_q <= Done;
      Header: if (header_valid && word_taken) state_q <= Count;
      Count: if (word_taken) state_q <= Done;
      default: if (done_valid_o && done_ready_i) state_q <= Take;
    endcase

    // The cap-th symbol goes through the prediction network, then the step ends without another joint.
    if (state_q == Predict && run_done_i && greedy && tokens_q != '0 && capped) state_q <= Header;

    if (run_done_i && run_fault_i != FaultNone) begin
      entry_q.fault <= run_fault_i;
      entry_q.unit <= UnitSequencer;
      entry_q.detail <= run_detail_i;
      scan_wanted_q <= 1'b0;
      state_q <= Done;
    end
    if (rst_i) begin
      state_q <= Take;
      scan_wanted_q <= 1'b0;
    end
  end

  logic unused;
  assign unused = &{1'b0, header_i};  // fields of other blocks
endmodule
