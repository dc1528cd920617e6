// SPDX-License-Identifier: Apache-2.0
// Commands on their way: gathers their ends, in any order, and completes them in theirs; a failed one loses its destination slots.
//
// Younger commands that were accepted before a failure are suspect: when they come to their end, their entries are looked through for a slot that
// they needed and that has been lost. While there is a suspect, nothing more is accepted.
module batch_completer
  import gharial_pkg::*;
  import host_pkg::*;
  import seat_pkg::*;
  import slot_pkg::*;
  import crc_pkg::*;
(
    input logic clk_i,
    input logic rst_i,
    input logic purge_i, // soft reset: drop the commands on their way, and free their slots

    // The front registers commands, and tells what becomes of the youngest.
    input  logic                 command_valid_i,
    output logic                 command_ready_o,
    input  way_t                 command_i,
    output logic     [WorkW-1:0] command_work_o,   // the name that it gets
    output logic                 empty_o,
    output logic                 alone_o,          // there is one
    input  logic                 accept_i,         // one clock: the youngest is accepted
    input  logic                 end_valid_i,      // one clock: it ends without work
    input  failure_t             end_failure_i,
    input  logic     [     15:0] end_index_i,
    input  logic                 deciding_i,       // it is about to be accepted: slots must not be lost meanwhile
    output logic                 dropping_o,       // slots are lost
    output logic                 suspects_o,
    output logic                 freed_o,          // one clock: so many entries are not needed any more
    output logic     [     15:0] freed_count_o,

    // Ends of work.
    input  logic       done_valid_i,
    output logic       done_ready_o,
    input  work_done_t done_i,

    // Ring.
    input  logic [63:0] base_i,
    input  logic [ 4:0] log2_i,
    input  logic [31:0] taken_i,  // CPL_HEAD
    output logic [31:0] tail_o,   // CPL_TAIL
    output logic        held_o,   // a completion waits for room
    input  logic [63:0] clock_i,

    // Writing.
    output logic               word_valid_o,
    input  logic               word_ready_i,
    output write_t             word_o,
    input  logic               write_taken_i,       // a word of anyone
    input  logic               write_answered_i,
    input  logic               write_error_i,       // a clock later
    input  logic   [     31:0] write_error_addr_i,
    input  logic               write_error_work_i,  // it is a word of a command's results, or of a slot
    input  logic   [WorkW-1:0] write_work_i,        // which

    // Entries and slots.
    input  header_t             header_i,
    input  logic         [15:0] enc_slots_i,
    input  logic         [15:0] pred_slots_i,
    output logic                entry_valid_o,
    input  logic                entry_ready_i,
    output logic         [15:0] entry_index_o,
    input  logic                entry_got_i,
    input  entry_words_t        entry_i,
    output logic                slot_valid_o,
    input  logic                slot_ready_i,
    output slot_edit_t          slot_o,
    input  logic                slot_told_i,
    input  slot_t               slot_i,

    // What happened.
    output logic                 irq_o,          // one clock: a completion with the interrupt flag
    output logic                 halt_o,         // one clock
    output failure_t             failure_o,
    output logic     [     31:0] tag_o,
    output logic     [WorkW-1:0] oldest_work_o,
    output logic     [     63:0] oldest_clock_o  // of the oldest command, for the watchdog
);
  typedef enum logic [3:0] {
    Gather,
    Settle,   // all results are answered
    Look,     // a suspect
    Regain,   // and has lost nothing
    Judge,
    Drop,
    Room,
    Load,
    Word,
    Answer,
    Publish,
    Halted,
    Purge,
    Purging
  } state_e;

  // Commands, oldest first; by their names, what has become of each.
  way_t head;
  logic head_valid, pop;
  logic [WorkW-1:0] head_q, next_q, young_q;
  logic [WorkW:0] count_q;
  logic accepted_q[Works], ended_q[Works], suspect_q[Works];
  failure_t failure_q[Works];
  logic [15:0] entry_q[Works], predictions_q[Works], joints_q[Works];
  small_fifo #(
      .Width($bits(way_t)),
      .Depth(Works)
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

  state_e state_q;
  logic [31:0] index_q, crc_q, word, data_q;
  logic [ 2:0] word_q;
  logic [63:0] clocks_q;
  logic write_failed_q, publish, register, settled, answer_q;
  logic walk_start, walk_done, walk_reset, has_slots, drops;
  logic [31:0] word_error_q;
  failure_t failed;  // the oldest command's

  assign register = command_valid_i && command_ready_o;
  assign command_work_o = next_q;
  assign empty_o = !head_valid;
  assign alone_o = count_q == (WorkW + 1)'(1);
  assign oldest_work_o = head_q;
  assign failed = failure_q[head_q];
  assign tail_o = index_q;
  assign tag_o = head.tag;
  assign oldest_clock_o = head.clock;
  assign publish = state_q == Publish && !purge_i;
  assign pop = publish || (state_q == Purge && purge_i && head_valid && !has_slots) || (state_q == Purging && walk_done);
  assign freed_o = pop;
  assign freed_count_o = head.listed.count;
  assign irq_o = publish && head.irq;
  assign halt_o = (publish && failed.fault >= FaultBadOpcode) || (state_q == Answer && settled && write_failed_q && !purge_i);
  always_comb begin
    failure_o = failed;
    if (state_q == Answer) failure_o = '{fault: FaultBusWrite, unit: UnitMemory, detail: word_error_q};
  end

  always_comb begin
    suspects_o = 1'b0;
    for (int w = 0; w < int'(Works); w++) suspects_o = suspects_o || suspect_q[w];
  end

  function automatic logic [15:0] saturating(input logic [15:0] a, input logic [15:0] b);
    logic [16:0] sum;
    sum = 17'(a) + 17'(b);
    return sum[16] ? 16'hFFFF : sum[15:0];
  endfunction

  // Walks.
  walk_e walk_q;
  failure_t walk_failure;
  logic [15:0] walk_index;
  assign has_slots = head.listed.count != '0 && (on_streams(head.listed.operation) || on_slots(head.listed.operation));
  assign drops = failed.fault != FaultNone && accepted_q[head_q] && has_slots;
  assign walk_reset = rst_i || (purge_i && state_q != Purge && state_q != Purging);
  assign dropping_o = state_q == Drop || (state_q == Judge && drops);

  entry_walker u_walker (
      .clk_i,
      .rst_i(walk_reset),
      .start_i(walk_start),
      .walk_i(walk_q),
      .listed_i(head.listed),
      .done_o(walk_done),
      .failure_o(walk_failure),
      .index_o(walk_index),
      .header_i,
      .enc_slots_i,
      .pred_slots_i,
      .descriptor_i('0),
      .result_bytes_i('0),
      .entry_valid_o,
      .entry_ready_i,
      .entry_index_o,
      .entry_got_i,
      .entry_i,
      .slot_valid_o,
      .slot_ready_i,
      .slot_o,
      .slot_told_i,
      .slot_i
  );

  // Words on their way: all that were taken before a moment are answered, errors known.
  logic [7:0] taken_q, answered_q, mark_q, behind;
  assign behind  = answered_q - mark_q;
  assign settled = !behind[7];
  always_ff @(posedge clk_i) begin
    taken_q <= taken_q + 8'(write_taken_i);
    answer_q <= write_answered_i;
    answered_q <= answered_q + 8'(answer_q);
    if (state_q == Gather || (state_q == Word && word_ready_i)) mark_q <= taken_q + 8'(write_taken_i);
    if (rst_i) {taken_q, answered_q, answer_q} <= '0;
  end

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

  assign word_valid_o = state_q == Word;
  assign word_o = '{addr: addr_q, data: data_q};
  always_comb begin
    unique case (word_q)
      3'd0: word = head.tag;
      3'd1: word = {entry_q[head_q], 8'(failed.unit), 8'(failed.fault)};
      3'd2: word = failed.detail;
      3'd3: word = index_q;
      3'd4: word = clocks_q[31:0];
      3'd5: word = clocks_q[63:32];
      3'd6: word = {joints_q[head_q], predictions_q[head_q]};
      default: word = ~crc_q;
    endcase
  end

  // What becomes of commands. An end without work and an end of work do not come in one clock.
  assign done_ready_o = !end_valid_i;
  always_ff @(posedge clk_i) begin
    if (pop) begin
      head_q <= head_q + WorkW'(1);
      accepted_q[head_q] <= 1'b0;
      suspect_q[head_q] <= 1'b0;
    end
    if (register) begin
      next_q <= next_q + WorkW'(1);
      young_q <= next_q;
      accepted_q[next_q] <= 1'b0;
      ended_q[next_q] <= 1'b0;
      failure_q[next_q] <= NoFailure;
      entry_q[next_q] <= '0;
      predictions_q[next_q] <= '0;
      joints_q[next_q] <= '0;
    end
    count_q <= count_q + (WorkW + 1)'(register) - (WorkW + 1)'(pop);

    if (accept_i) accepted_q[young_q] <= 1'b1;
    if (end_valid_i) begin
      ended_q[young_q] <= 1'b1;
      if (failure_q[young_q].fault == FaultNone && end_failure_i.fault != FaultNone) begin
        failure_q[young_q] <= end_failure_i;
        entry_q[young_q]   <= end_index_i;
      end
    end else if (done_valid_i) begin
      ended_q[done_i.work] <= done_i.last;
      predictions_q[done_i.work] <= saturating(predictions_q[done_i.work], done_i.predictions);
      joints_q[done_i.work] <= saturating(joints_q[done_i.work], done_i.joints);
      if (failure_q[done_i.work].fault == FaultNone && done_i.fault != FaultNone) begin
        failure_q[done_i.work] <= '{fault: done_i.fault, unit: done_i.unit, detail: done_i.detail};
        entry_q[done_i.work]   <= done_i.entry;
      end
    end
    if (write_error_i && write_error_work_i && failure_q[write_work_i].fault == FaultNone) begin
      failure_q[write_work_i] <= '{fault: FaultBusWrite, unit: UnitMemory, detail: write_error_addr_i};
      entry_q[write_work_i]   <= '0;
    end
    if (state_q == Look && walk_done && walk_failure.fault != FaultNone) begin
      failure_q[head_q] <= walk_failure;
      entry_q[head_q]   <= walk_index;
    end
    if (state_q == Judge && drops && !deciding_i) begin
      for (int w = 0; w < int'(Works); w++) suspect_q[w] <= accepted_q[w] && WorkW'(w) != head_q;
    end
    if (rst_i) begin
      {head_q, next_q, count_q} <= '0;
      for (int w = 0; w < int'(Works); w++) {accepted_q[w], suspect_q[w]} <= '0;
    end
  end

  always_ff @(posedge clk_i) begin
    walk_start <= 1'b0;
    if (write_error_i && !write_error_work_i && !write_failed_q) begin
      write_failed_q <= 1'b1;
      word_error_q   <= write_error_addr_i;
    end

    unique case (state_q)
      Gather: begin
        word_q <= '0;
        crc_q  <= CrcInit;
        if (head_valid && ended_q[head_q]) state_q <= Settle;
      end
      Settle: begin
        if (settled) begin
          walk_q  <= WalkLook;
          state_q <= Judge;
          if (suspect_q[head_q] && failed.fault == FaultNone && has_slots) begin
            walk_start <= 1'b1;
            state_q <= Look;
          end
        end
      end
      Look: begin
        if (walk_done) begin
          walk_q  <= WalkRegain;
          state_q <= Judge;
          if (walk_failure.fault == FaultNone) begin
            walk_start <= 1'b1;
            state_q <= Regain;
          end
        end
      end
      Regain: if (walk_done) state_q <= Judge;
      Judge: begin
        walk_q <= WalkDrop;
        if (!drops) state_q <= Room;
        else if (!deciding_i) begin
          walk_start <= 1'b1;
          state_q <= Drop;
        end
      end
      Drop: if (walk_done) state_q <= Room;
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
      Answer: if (settled) state_q <= write_failed_q ? Halted : Publish;
      Publish: begin
        index_q <= index_q + 32'd1;
        state_q <= (failed.fault >= FaultBadOpcode) ? Halted : Gather;
      end
      Purge: begin
        walk_q <= accepted_q[head_q] ? WalkPurge : WalkUndo;
        if (head_valid && has_slots) begin
          walk_start <= 1'b1;
          state_q <= Purging;
        end
      end
      Purging: if (walk_done) state_q <= Purge;
      default: ;  // until reset
    endcase

    if (purge_i && state_q != Purge && state_q != Purging) begin
      walk_start <= 1'b0;
      state_q <= Purge;
    end
    if (rst_i) begin
      state_q <= Gather;
      walk_start <= 1'b0;
      write_failed_q <= 1'b0;
      index_q <= '0;
    end
  end

  logic unused;
  assign unused = &{1'b0, behind};  // its sign counts
endmodule
