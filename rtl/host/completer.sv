// SPDX-License-Identifier: Apache-2.0
// Ends commands in their order: gathers the ends of a command's entries, frees its slots if it failed, writes the completion, advances the index.
module completer
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
  import crc_pkg::*;
(
    input logic clk_i,
    input logic rst_i,
    input logic purge_i, // soft reset: drop the commands on their way, one a clock, and free their slots

    // Commands on their way, in order.
    input  logic     command_valid_i,
    output logic     command_ready_o,
    input  command_t command_i,
    output logic     empty_o,

    // Ends of entries.
    input  logic        done_valid_i,
    output logic        done_ready_o,
    input  entry_done_t done_i,

    // Ring.
    input  logic [63:0] base_i,
    input  logic [ 4:0] log2_i,
    input  logic [31:0] taken_i,  // CPL_HEAD
    output logic [31:0] tail_o,   // CPL_TAIL
    output logic        held_o,   // a completion waits for room
    input  logic [63:0] clock_i,

    // Slots.
    input  logic [ EncSlots-1:0] enc_none_i,
    input  logic [PredSlots-1:0] pred_none_i,
    output logic                 drop_o,
    output logic [ EncSlots-1:0] drop_enc_o,
    output logic [PredSlots-1:0] drop_pred_o,

    // Writing.
    output logic          word_valid_o,
    input  logic          word_ready_i,
    output write_t        word_o,
    input  logic          writer_idle_i,
    input  logic          write_error_i,
    input  logic   [31:0] write_error_addr_i,

    // What happened.
    output logic            irq_o,          // one clock: a completion with the interrupt flag
    output logic            halt_o,         // one clock
    output failure_t        failure_o,
    output logic     [31:0] tag_o,
    output logic     [63:0] oldest_clock_o  // of the oldest command, for the watchdog
);
  localparam int unsigned Depth = 4;

  typedef enum logic [3:0] {
    Gather,
    Settle,   // all results are answered
    Look,     // slots that older commands' faults took: is there one?
    Lost,
    Room,
    Load,
    Word,
    Answer,
    Publish,
    Unwritten,  // the completion could not be written, and does not count
    Halted  // and from a purge on
  } state_e;

  command_t head;
  logic head_valid, pop;
  small_fifo #(
      .Width($bits(command_t)),
      .Depth(Depth)
  ) u_commands (
      .clk_i,
      .rst_i,
      .push_valid_i(command_valid_i),
      .push_ready_o(command_ready_o),
      .push_data_i (command_i),
      .pop_valid_o (head_valid),
      .pop_ready_i (pop),
      .pop_data_o  (head)
  );

  state_e   state_q;
  failure_t failure_q;
  logic [15:0] entry_q, predictions_q, joints_q;
  logic [31:0] index_q, crc_q;
  logic [2:0] word_q;
  logic [63:0] clocks_q;
  logic write_failed_q;

  assign empty_o = !head_valid;
  assign done_ready_o = state_q == Gather;
  assign tail_o = index_q;
  assign tag_o = head.tag;
  assign failure_o = failure_q;
  assign oldest_clock_o = head.clock;
  logic publish;
  assign publish = state_q == Publish && !purge_i;
  assign pop = publish || purge_i;
  assign irq_o = publish && head.irq;
  assign halt_o = (publish && failure_q.fault >= FaultBadOpcode) || state_q == Unwritten;

  function automatic logic [15:0] saturating(input logic [15:0] a, input logic [15:0] b);
    logic [16:0] sum;
    sum = 17'(a) + 17'(b);
    return sum[16] ? 16'hFFFF : sum[15:0];
  endfunction

  // A younger command may have lost a slot to an older one's fault after it was accepted; the first such slot, encoder slots before prediction
  // slots, is looked for one by one.
  logic [EncSlots-1:0] lost_enc_q;
  logic [PredSlots-1:0] lost_pred_q;
  logic [15:0] lost_q;
  logic any_enc_q, any_pred_q;

  // The ring, as it is two clocks after an index has moved.
  logic [31:0] size_q, used_q;
  logic [63:0] addr_q;
  logic full_q;
  assign held_o = state_q == Room && full_q;
  always_ff @(posedge clk_i) begin
    size_q <= 32'd1 << log2_i;
    used_q <= index_q - taken_i;
    full_q <= used_q >= size_q;
    if (rst_i) {used_q, full_q} <= '0;
  end

  logic room_q;  // once a command: a full ring of completions may hold it for long
  always_ff @(posedge clk_i) begin
    room_q <= state_q == Room;
    drop_o <= (state_q == Room && !room_q && failure_q.fault != FaultNone) || (purge_i && head_valid);
    drop_enc_o <= head.enc;
    drop_pred_o <= head.pred;
    if (rst_i) drop_o <= 1'b0;
  end

  assign word_valid_o = state_q == Word;
  logic [31:0] word, data_q;
  assign word_o = '{addr: addr_q, data: data_q};
  always_comb begin
    unique case (word_q)
      3'd0: word = head.tag;
      3'd1: word = {entry_q, 8'(failure_q.unit), 8'(failure_q.fault)};
      3'd2: word = failure_q.detail;
      3'd3: word = index_q;
      3'd4: word = clocks_q[31:0];
      3'd5: word = clocks_q[63:32];
      3'd6: word = {joints_q, predictions_q};
      default: word = ~crc_q;
    endcase
  end

  // A word of the completion that fails is what the machine halts for, whatever the command has come to.
  logic completing;
  assign completing = state_q == Load || state_q == Word || state_q == Answer;

  always_ff @(posedge clk_i) begin
    if (write_error_i && !write_failed_q) begin
      write_failed_q <= 1'b1;
      if (failure_q.fault == FaultNone || completing)
        failure_q <= '{fault: FaultBusWrite, unit: UnitMemory, detail: write_error_addr_i};
    end

    unique case (state_q)
      Gather: begin
        word_q <= '0;
        crc_q  <= CrcInit;
        if (done_valid_i) begin
          predictions_q <= saturating(predictions_q, done_i.predictions);
          joints_q <= saturating(joints_q, done_i.joints);
          if (failure_q.fault == FaultNone && done_i.fault != FaultNone) begin
            failure_q <= '{fault: done_i.fault, unit: done_i.unit, detail: done_i.detail};
            entry_q   <= done_i.index;
          end
          if (done_i.last) state_q <= Settle;
        end
      end
      Settle: begin
        lost_enc_q <= head.enc_needed & enc_none_i;
        lost_pred_q <= head.pred_needed & pred_none_i;
        lost_q <= '0;
        if (writer_idle_i) begin
          write_failed_q <= 1'b0;
          state_q <= Look;
        end
      end
      Look: begin
        any_enc_q <= lost_enc_q != '0;
        any_pred_q <= lost_pred_q != '0;
        state_q <= Lost;
      end
      Lost: begin
        lost_q <= lost_q + 16'd1;
        if (any_enc_q) lost_enc_q <= lost_enc_q >> 1;
        else lost_pred_q <= lost_pred_q >> 1;
        state_q <= Look;
        if (failure_q.fault != FaultNone || (!any_enc_q && !any_pred_q)) begin
          state_q <= Room;
        end else if (any_enc_q ? lost_enc_q[0] : lost_pred_q[0]) begin
          failure_q <= '{fault: FaultBadSlot, unit: UnitSequencer, detail: 32'(lost_q)};
          state_q   <= Room;
        end
      end
      Room: begin
        clocks_q <= clock_i - head.clock;
        addr_q   <= base_i + {27'd0, index_q & (size_q - 32'd1), 5'd0};
        if (!full_q) state_q <= Load;
      end
      Load: begin
        data_q  <= word;
        state_q <= Word;
      end
      Word: begin
        if (word_ready_i) begin
          crc_q   <= crc_next(crc_q, data_q);
          addr_q  <= addr_q + 64'd4;
          word_q  <= word_q + 3'd1;
          state_q <= (word_q == 3'd7) ? Answer : Load;
        end
      end
      // The last word's error comes in the clock in which the writer is idle.
      Answer: if (writer_idle_i) state_q <= (write_failed_q || write_error_i) ? Unwritten : Publish;
      Publish: begin
        index_q <= index_q + 32'd1;
        entry_q <= '0;
        predictions_q <= '0;
        joints_q <= '0;
        if (failure_q.fault >= FaultBadOpcode) begin
          state_q <= Halted;
        end else begin
          failure_q <= NoFailure;
          state_q   <= Gather;
        end
      end
      Unwritten: state_q <= Halted;
      default: ;  // until reset
    endcase

    // What shows at the head is an older command from here on: no end of work may be laid to it.
    if (purge_i) state_q <= Halted;
    if (rst_i) begin
      state_q <= Gather;
      failure_q <= NoFailure;
      write_failed_q <= 1'b0;
      index_q <= '0;
      entry_q <= '0;
      predictions_q <= '0;
      joints_q <= '0;
    end
  end

`ifdef FORMAL
  logic works;
  assign works = (done_valid_i && done_ready_o) || (state_q != Gather && state_q != Halted);
  always_ff @(posedge clk_i) begin
    if (!rst_i && works) a_head : assert (head_valid);
  end
`endif  // FORMAL
endmodule
