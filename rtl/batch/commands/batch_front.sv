// SPDX-License-Identifier: Apache-2.0
// Takes commands off the ring one by one, checks each and its entries, and has it done: by the seater, the slot commands, or the program loader.
//
// A command is registered with the completer before its entries are checked, so that whatever ends it keeps the order. ENCODE, DECODE, GREEDY and
// NOP follow one another; all others wait until nothing else is on its way. Where an older command fails while entries are checked, or suspects are
// left (batch_completer), the check is made again when those have ended. Whatever comes behind a command whose features are bad waits for its end.
module batch_front
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
  import seat_pkg::*;
  import slot_pkg::*;
  import crc_pkg::*;
#(
    parameter int unsigned Entries = 256  // of the entry store
) (
    input logic clk_i,
    input logic rst_i,  // and soft reset

    // Ring.
    input  logic            run_i,           // enabled and not halted, and the slot table is there
    input  logic     [63:0] base_i,
    input  logic     [ 4:0] log2_i,
    input  logic     [31:0] tail_i,
    output logic     [31:0] head_o,
    input  logic     [63:0] mem_size_i,
    input  logic     [63:0] clock_i,
    output logic            halt_o,          // one clock
    output failure_t        halt_failure_o,
    output logic            busy_o,

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

    // The completer.
    output logic                 command_valid_o,
    input  logic                 command_ready_i,
    output way_t                 command_o,
    input  logic     [WorkW-1:0] command_work_i,
    input  logic                 alone_i,
    input  logic                 empty_i,
    output logic                 accept_o,
    output logic                 deciding_o,
    input  logic                 dropping_i,
    input  logic                 suspects_i,
    output logic                 end_valid_o,
    output failure_t             end_failure_o,
    output logic     [     15:0] end_index_o,
    input  logic                 freed_i,
    input  logic     [     15:0] freed_count_i,

    // Entry store, and walks through the command's entries.
    output logic               store_we_o,
    output logic        [15:0] store_index_o,
    output logic        [ 1:0] store_word_o,
    output logic               walk_start_o,
    output walk_e              walk_o,
    output listed_t            listed_o,
    input  logic               walk_done_i,
    input  failure_t           walk_failure_i,
    input  logic        [15:0] walk_index_i,
    output descriptor_t        descriptor_o,
    output logic        [31:0] result_bytes_o,

    // Who does the rest.
    output logic            features_start_o,
    input  logic            features_done_i,
    input  failure_t        features_failure_i,
    input  logic     [15:0] features_index_i,
    output logic            work_valid_o,
    input  logic            work_ready_i,
    output work_t           work_o,
    output logic            slots_start_o,
    input  logic            slots_done_i,
    input  failure_t        slots_failure_i,
    input  logic     [15:0] slots_index_i,
    output logic            load_o,
    output logic            start_o,
    input  logic            load_done_i,
    input  failure_t        load_failure_i
);
  typedef enum logic [4:0] {
    Wait,
    Request,
    Descriptor,
    Check,
    EntryRoom,
    EntryRequest,
    EntryWords,
    EntriesCrc,
    Register,
    Barrier,
    Clear,     // no older command's failure is at work
    CheckWalk,
    Decide,
    Undo,
    Accept,
    Features,
    Work,
    Slots,
    Program,
    End,
    Failed
  } state_e;

  state_e state_q;
  descriptor_t descriptor_q;
  logic [31:0] head_q, crc_q;
  logic [63:0] clock_q;
  logic [15:0] words_q, count, first_q, end_index_q;
  logic [7:0] operation;
  failure_t failure_q, command_failure;
  logic [WorkW-1:0] work_q;
  logic garbled_q;  // nothing of the descriptor can be believed
  logic fetched_q;  // its entries have room in the store
  logic again_q;  // an older command has failed since the check began
  logic streams_q, moves_q, late_q;  // late: it fails after it was accepted

  assign operation = descriptor_q[0][7:0];
  assign count = descriptor_q[0][31:16];
  assign head_o = head_q;
  assign descriptor_o = descriptor_q;
  assign busy_o = state_q != Wait;

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

  // The entry store is a ring: entries follow one another in the order of their commands.
  logic [15:0] used_q, next_q;
  logic room_q, allot;
  assign allot = state_q == EntryRoom && room_q;
  always_ff @(posedge clk_i) begin
    room_q <= 17'(used_q) + 17'(count) <= 17'(Entries) && state_q == EntryRoom;
    used_q <= used_q + (allot ? count : '0) - (freed_i ? freed_count_i : '0);
    if (allot) next_q <= next_q + count;
    if (rst_i) {used_q, next_q} <= '0;
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

  assign store_we_o = state_q == EntryWords && data_valid_i;
  assign store_index_o = first_q + {2'b00, words_q[15:2]};
  assign store_word_o = words_q[1:0];

  logic prediction, checks_features;
  assign checks_features = descriptor_q[0][8+FlagChecked] && (operation == CmdEncode || operation == CmdGreedy) && count != '0;
  assign prediction = descriptor_q[0][8+FlagPrediction];
  assign command_valid_o = state_q == Register;
  assign command_o = '{
          tag: garbled_q ? '0 : descriptor_q[1],
          irq: descriptor_q[0][8+FlagInterrupt] && !garbled_q,
          clock: clock_q,
          listed: '{operation: operation, prediction: prediction, first: first_q, count: fetched_q ? count : '0}
      };
  assign listed_o = '{
          operation: operation,
          prediction: prediction,
          first: first_q,
          count: (state_q == Undo && failure_q.fault != FaultNone) ? end_index_q : count
      };

  assign deciding_o = state_q == Decide || state_q == Accept;
  assign accept_o = state_q == Decide && !again_q && !dropping_i;
  assign end_valid_o = state_q == End;
  assign end_failure_o = failure_q;
  assign end_index_o = end_index_q;
  assign halt_failure_o = failure_q;
  assign work_valid_o = state_q == Work;
  assign work_o = '{
          work: work_q,
          operation: command_e'(operation),
          checked: descriptor_q[0][8+FlagChecked],
          first: first_q,
          count: count,
          features: {descriptor_q[11], descriptor_q[10]},
          k: descriptor_q[6][7:0],
          mode: descriptor_q[6][9:8],
          named: descriptor_q[6][12:10],
          named_class: {descriptor_q[8], descriptor_q[7]},
          temperature: descriptor_q[6][31:16],
          result: {descriptor_q[5], descriptor_q[4]},
          result_stride: descriptor_q[9]
      };

  always_ff @(posedge clk_i) begin
    halt_o <= 1'b0;
    {walk_start_o, slots_start_o, features_start_o} <= '0;
    load_o <= 1'b0;
    start_o <= 1'b0;
    if (dropping_i) again_q <= 1'b1;

    unique case (state_q)
      Wait: begin
        clock_q <= clock_i;
        crc_q <= CrcInit;
        words_q <= '0;
        end_index_q <= '0;
        garbled_q <= 1'b1;
        fetched_q <= 1'b0;
        late_q <= 1'b0;
        if (run_i && overrun_q) begin
          halt_o <= 1'b1;
          failure_q <= '{fault: FaultRingOverrun, unit: UnitHost, detail: tail_i};
        end else if (run_i && waiting_q && !halt_o) begin
          failure_q <= NoFailure;
          state_q   <= Request;
        end
      end
      Request:      if (read_ready_i) state_q <= Descriptor;
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
        look_q  <= look_q + 2'd1;
        words_q <= '0;
        if (look_q == 2'd3) begin
          failure_q <= command_failure;
          garbled_q <= command_failure.fault == FaultChecksum;
          if (command_failure.fault != FaultNone || !(streams_q || moves_q)) state_q <= Register;
          else state_q <= (count == '0) ? EntriesCrc : EntryRoom;
          if (command_failure.fault == FaultNone) crc_q <= CrcInit;
        end
      end
      EntryRoom: begin
        first_q   <= next_q;
        fetched_q <= allot;
        if (allot) state_q <= EntryRequest;
      end
      EntryRequest: if (read_ready_i) state_q <= EntryWords;
      EntryWords: begin
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
        state_q <= Register;
        if (descriptor_q[0][8+FlagChecked] && ~crc_q != descriptor_q[14]) begin
          failure_q <= '{fault: FaultChecksum, unit: UnitHost, detail: ~crc_q};
        end
      end
      Register: begin
        work_q <= command_work_i;
        if (command_ready_i) begin
          if (failure_q.fault != FaultNone || operation == CmdNop) state_q <= End;
          else state_q <= streams_q ? Clear : Barrier;
        end
      end
      Barrier: begin
        load_o  <= alone_i && operation == CmdLoad;
        start_o <= alone_i && operation == CmdStart;
        if (alone_i) state_q <= moves_q ? Clear : Program;
      end
      Clear: begin
        again_q <= 1'b0;
        walk_o  <= WalkCheck;
        if (!dropping_i && !suspects_i) begin
          walk_start_o <= 1'b1;
          state_q <= CheckWalk;
        end
      end
      CheckWalk: begin
        if (walk_done_i) begin
          failure_q   <= walk_failure_i;
          end_index_q <= walk_index_i;
          walk_o      <= WalkUndo;
          state_q     <= Decide;
          if (walk_failure_i.fault != FaultNone) begin
            walk_start_o <= 1'b1;
            state_q <= Undo;
          end
        end
      end
      Decide: begin
        walk_start_o <= 1'b1;
        if (accept_o) begin
          walk_o  <= WalkAccept;
          state_q <= Accept;
        end else begin
          again_q <= 1'b1;
          state_q <= Undo;
        end
      end
      Undo: begin
        if (walk_done_i) begin
          if (again_q || dropping_i) begin
            failure_q <= NoFailure;
            state_q   <= Clear;
          end else begin
            state_q <= End;
          end
        end
      end
      Accept: begin
        end_index_q <= '0;
        if (walk_done_i) begin
          slots_start_o <= moves_q;
          features_start_o <= checks_features;
          if (moves_q) state_q <= Slots;
          else state_q <= (count == '0) ? End : checks_features ? Features : Work;
        end
      end
      Features: begin
        if (features_done_i) begin
          failure_q   <= features_failure_i;
          end_index_q <= (features_failure_i.fault != FaultNone) ? features_index_i : '0;
          late_q      <= features_failure_i.fault != FaultNone;
          state_q     <= (features_failure_i.fault != FaultNone) ? End : Work;
        end
      end
      Work:         if (work_ready_i) state_q <= Wait;
      Slots: begin
        if (slots_done_i) begin
          failure_q   <= slots_failure_i;
          end_index_q <= (slots_failure_i.fault != FaultNone) ? slots_index_i : '0;
          state_q     <= End;
        end
      end
      Program: begin
        if (load_done_i) begin
          failure_q <= load_failure_i;
          state_q   <= End;
        end
      end
      End:          state_q <= late_q ? Failed : Wait;
      default:      if (empty_i) state_q <= Wait;
    endcase

    if (rst_i) begin
      state_q <= Wait;
      head_q <= '0;
      walk_start_o <= 1'b0;
    end
  end

endmodule
