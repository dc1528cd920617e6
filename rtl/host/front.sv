// SPDX-License-Identifier: Apache-2.0
// F stage: takes commands off the ring one by one, checks each, and has it done: by the entry sender, the slot commands, or the program loader.
//
// While a command's entries compute, the next one is fetched, checked and prepared. Commands other than ENCODE, DECODE, GREEDY and NOP wait
// until nothing is on its way, and so does whatever comes behind a command whose features were bad: its slots are free by then. Every command
// ends with a last entry through the sequencer, so that completions keep the order.
module front
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
  import crc_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    // Ring.
    input  logic            run_i,           // enabled and not halted
    input  logic     [63:0] base_i,
    input  logic     [ 4:0] log2_i,
    input  logic     [31:0] tail_i,
    output logic     [31:0] head_o,
    input  logic     [63:0] mem_size_i,
    input  logic     [63:0] clock_i,
    output logic            halt_o,          // one clock
    output failure_t        halt_failure_o,
    output logic            busy_o,
    output logic            pending_o,       // slots have changed for a command that is not registered yet

    // Program.
    input logic        program_i,
    input logic [15:0] classes_i,

    // Reading.
    output logic         read_valid_o,
    input  logic         read_ready_i,
    output read_t        read_o,
    input  logic         data_valid_i,
    input  logic  [31:0] data_i,
    input  logic         error_i,
    input  logic  [31:0] error_addr_i,

    // To the completer.
    output logic     command_valid_o,
    input  logic     command_ready_i,
    output command_t command_o,
    input  logic     empty_i,          // no command on its way

    // Slot table.
    output logic                 clear_marks_o,
    output logic                 mark_o,          // the entry in check
    output logic                 accept_o,        // the entry's slots become what the command makes them
    input  logic [ EncSlots-1:0] enc_written_i,
    input  logic [PredSlots-1:0] pred_written_i,
    input  logic [ EncSlots-1:0] enc_read_i,
    input  logic [PredSlots-1:0] pred_read_i,

    // Entry store and its check.
    output logic            store_we_o,
    output logic     [15:0] store_addr_o,
    output logic            get_o,
    output logic     [15:0] index_o,
    input  logic            got_i,
    input  failure_t        entry_failure_i,

    // Who does the rest.
    output descriptor_t        descriptor_o,
    output logic        [31:0] result_bytes_o,
    output logic        [64:0] result_o,         // address of the entry's result, and a bit more
    output logic               send_start_o,
    input  logic               send_done_i,
    input  logic               send_failed_i,    // then: the features were bad
    output logic               slots_start_o,
    input  logic               slots_done_i,
    input  failure_t           slots_failure_i,
    input  logic        [15:0] slots_index_i,
    output logic               load_o,
    output logic               start_o,
    input  logic               load_done_i,
    input  failure_t           load_failure_i,

    // The last entry of commands without entries to compute.
    output logic            end_valid_o,
    input  logic            end_ready_i,
    output failure_t        end_failure_o,
    output logic     [15:0] end_index_o
);
  typedef enum logic [4:0] {
    Wait,
    Request,
    Descriptor,
    Check,
    EntryRequest,
    Entries,
    EntriesCrc,
    CheckGet,
    CheckEntry,
    Barrier,
    Register,
    AcceptGet,
    AcceptEntry,
    Send,
    Failed,
    Slots,
    Program,
    End
  } state_e;

  (* fsm_encoding = "one-hot" *)
  state_e state_q;
  descriptor_t descriptor_q;
  logic [31:0] head_q, crc_q;
  logic [63:0] clock_q;
  logic [64:0] result_q;
  logic [15:0] index_q, words_q, count;
  logic [7:0] operation;
  failure_t failure_q, command_failure;
  logic accepted_q, garbled_q;  // garbled: nothing of the descriptor can be believed
  logic streams_q, moves_q;

  assign operation = descriptor_q[0][7:0];
  assign count = descriptor_q[0][31:16];
  assign head_o = head_q;
  assign descriptor_o = descriptor_q;
  assign result_o = result_q;
  assign busy_o = state_q != Wait;
  assign pending_o = accepted_q && streams_q && (state_q == AcceptGet || state_q == AcceptEntry || state_q == Register);

  // The ring, as it is two clocks after tail or head has moved; the head does not move just before it matters.
  logic [31:0] size_q, ahead_q;
  logic [63:0] ring_addr_q;
  logic overrun_q, waiting_q;
  always_ff @(posedge clk_i) begin
    size_q <= 32'd1 << log2_i;
    ahead_q <= tail_i - head_q;
    overrun_q <= ahead_q > size_q;
    waiting_q <= ahead_q != '0;
    streams_q <= on_streams(operation);
    moves_q <= on_slots(operation);
    ring_addr_q <= base_i + {26'd0, head_q & (size_q - 32'd1), 6'd0};
    if (rst_i) begin
      ahead_q   <= '0;
      overrun_q <= 1'b0;
      waiting_q <= 1'b0;
    end
  end

  logic [1:0] look_q;  // clocks for the check
  command_check u_check (
      .clk_i,
      .descriptor_i(descriptor_q),
      .crc_i(~crc_q),
      .program_i,
      .classes_i,
      .mem_size_i,
      .failure_o(command_failure),
      .result_bytes_o
  );

  always_comb begin
    read_valid_o = state_q == Request || state_q == EntryRequest;
    read_o = '{addr: ring_addr_q, words: 27'd16};
    if (state_q == EntryRequest) read_o = '{addr: {descriptor_q[3], descriptor_q[2]}, words: {9'd0, count, 2'b00}};
  end

  assign store_we_o = state_q == Entries && data_valid_i;
  assign store_addr_o = words_q;
  assign index_o = index_q;
  assign clear_marks_o = state_q == Check;
  assign mark_o = state_q == CheckEntry && got_i && entry_failure_i.fault == FaultNone;
  assign accept_o = state_q == AcceptEntry && got_i;
  assign get_o = (state_q == CheckGet || state_q == AcceptGet) && index_q != count;

  // What is free after a failure or a soft reset: a command's destinations. Slot commands mark them as if they were of the prediction network.
  logic drops, on_prediction;
  assign drops = accepted_q && operation != CmdSave;
  assign on_prediction = descriptor_q[0][8+FlagPrediction];
  assign command_valid_o = state_q == Register;
  always_comb begin
    command_o = '{
        tag: garbled_q ? '0 : descriptor_q[1],
        irq: descriptor_q[0][8+FlagInterrupt] && !garbled_q,
        clock: clock_q,
        enc: '0,
        pred: '0,
        enc_needed: '0,
        pred_needed: '0
    };
    if (drops && streams_q) command_o.enc = enc_written_i;
    if (drops && moves_q && !on_prediction) command_o.enc = pred_written_i[EncSlots-1:0];
    if (drops && (streams_q || on_prediction)) command_o.pred = pred_written_i;
    if (drops && streams_q) command_o.enc_needed = enc_written_i | enc_read_i;
    if (drops && streams_q) command_o.pred_needed = pred_written_i | pred_read_i;
  end

  assign end_valid_o = state_q == End;
  assign end_failure_o = failure_q;
  assign end_index_o = index_q;
  assign halt_failure_o = failure_q;

  always_ff @(posedge clk_i) begin
    halt_o <= 1'b0;
    send_start_o <= 1'b0;
    slots_start_o <= 1'b0;
    load_o <= 1'b0;
    start_o <= 1'b0;

    unique case (state_q)
      Wait: begin
        clock_q <= clock_i;
        crc_q <= CrcInit;
        words_q <= '0;
        index_q <= '0;
        accepted_q <= 1'b0;
        garbled_q <= 1'b1;
        if (run_i && overrun_q) begin
          halt_o <= 1'b1;
          failure_q <= '{fault: FaultRingOverrun, unit: UnitHost, detail: tail_i};
        end else if (run_i && waiting_q && !halt_o) begin
          failure_q <= NoFailure;
          state_q   <= Request;
        end
      end
      Request: if (read_ready_i) state_q <= Descriptor;
      Descriptor: begin
        look_q <= '0;
        if (data_valid_i) begin
          descriptor_q[words_q[3:0]] <= data_i;
          words_q <= words_q + 16'd1;
          if (words_q != 16'd15) crc_q <= crc_next(crc_q, data_i);
          else begin
            head_q  <= head_q + 32'd1;
            state_q <= Check;
          end
        end
        if (error_i) begin
          halt_o <= 1'b1;
          failure_q <= '{fault: FaultBusRead, unit: UnitMemory, detail: error_addr_i};
          state_q <= Wait;
        end
      end
      Check: begin
        look_q   <= look_q + 2'd1;
        words_q  <= '0;
        result_q <= {1'b0, descriptor_q[5], descriptor_q[4]};
        if (look_q == 2'd3) begin
          failure_q <= command_failure;
          garbled_q <= command_failure.fault == FaultChecksum;
          if (command_failure.fault != FaultNone || operation == CmdNop) state_q <= Register;
          else if (!streams_q && !moves_q) state_q <= Barrier;
          else state_q <= (count == '0) ? EntriesCrc : EntryRequest;
          if (command_failure.fault == FaultNone) crc_q <= CrcInit;
        end
      end
      EntryRequest: if (read_ready_i) state_q <= Entries;
      Entries: begin
        if (data_valid_i) begin
          crc_q   <= crc_next(crc_q, data_i);
          words_q <= words_q + 16'd1;
          if (words_q == {count[13:0], 2'b11} - 16'd4) state_q <= EntriesCrc;
        end
        if (error_i) begin
          failure_q <= '{fault: FaultBusRead, unit: UnitMemory, detail: error_addr_i};
          state_q   <= Register;
        end
      end
      EntriesCrc: begin
        state_q <= moves_q ? Barrier : CheckGet;
        if (descriptor_q[0][8+FlagChecked] && ~crc_q != descriptor_q[14]) begin
          failure_q <= '{fault: FaultChecksum, unit: UnitHost, detail: ~crc_q};
          state_q   <= Register;
        end
      end
      Barrier: begin
        if (empty_i) begin
          if (moves_q) state_q <= CheckGet;
          else state_q <= Register;
        end
      end
      CheckGet: begin
        if (index_q == count) begin
          index_q <= '0;
          accepted_q <= 1'b1;
          state_q <= streams_q ? AcceptGet : Register;
        end else begin
          state_q <= CheckEntry;
        end
      end
      CheckEntry: begin
        if (got_i) begin
          index_q  <= index_q + 16'd1;
          result_q <= result_q + 65'(descriptor_q[9]);
          state_q  <= CheckGet;
          if (entry_failure_i.fault != FaultNone) begin
            failure_q <= entry_failure_i;
            index_q   <= index_q;
            state_q   <= Register;
          end
        end
      end
      // The slots become what the command makes them as soon as it is accepted: younger commands are checked against that.
      AcceptGet: state_q <= (index_q == count) ? Register : AcceptEntry;
      AcceptEntry: begin
        if (got_i) begin
          index_q <= index_q + 16'd1;
          state_q <= AcceptGet;
        end
      end
      Register: begin
        if (command_ready_i) begin
          if (failure_q.fault != FaultNone || operation == CmdNop) begin
            state_q <= End;
          end else if (streams_q) begin
            send_start_o <= count != '0;
            state_q <= (count != '0) ? Send : End;
          end else if (moves_q) begin
            slots_start_o <= 1'b1;
            state_q <= Slots;
          end else begin
            load_o  <= operation == CmdLoad;
            start_o <= operation == CmdStart;
            state_q <= Program;
          end
        end
      end
      Send: if (send_done_i) state_q <= send_failed_i ? Failed : Wait;
      Failed: if (empty_i) state_q <= Wait;
      Slots: begin
        if (slots_done_i) begin
          failure_q <= slots_failure_i;
          index_q   <= (slots_failure_i.fault != FaultNone) ? slots_index_i : '0;
          state_q   <= End;
        end
      end
      Program: begin
        if (load_done_i) begin
          failure_q <= load_failure_i;
          index_q   <= '0;
          state_q   <= End;
        end
      end
      default: if (end_ready_i) state_q <= Wait;
    endcase

    if (rst_i) begin
      state_q <= Wait;
      head_q  <= '0;
    end
  end
endmodule
