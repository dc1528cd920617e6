// SPDX-License-Identifier: Apache-2.0
// Seats decode batches: for each entry of a DECODE, or of a GREEDY whose encode part is stored, takes the prediction slot that it writes, has joint_enc's
// bank and the prediction slot that it reads fetched, then hands the batch to the decode thread.
module decode_seater
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
  import seat_pkg::*;
  import seater_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    input places_t places_i,
    input layout_t layout_i,

    input  logic              cut_valid_i,
    output logic              cut_ready_o,
    input  cut_t              cut_i,
    input  logic  [Works-1:0] failed_i,         // commands that have failed
    input  mark_t             encodes_i,        // encode batches seated so far
    input  mark_t             encodes_ended_i,  // and stored
    output logic              seated_o,         // one clock: one more is
    output logic              idle_o,

    // Entries and slots.
    output logic                entry_valid_o,
    input  logic                entry_ready_i,
    output logic         [15:0] entry_index_o,
    input  logic                entry_got_i,
    input  entry_words_t        entry_i,
    output logic                slot_valid_o,
    input  logic                slot_ready_i,
    output slot_ask_t           slot_o,
    input  logic                slot_got_i,
    input  slot_told_t          slot_i,

    // Moves.
    output logic      job_valid_o,
    input  logic      job_ready_i,
    output move_job_t job_o,
    input  logic      moving_i,     // fetches of the present side are on their way
    output logic      side_o,

    // What is to be stored later, and the batch.
    input  logic                free_i,         // the present side
    output logic                home_we_o,
    output logic    [SeatW-1:0] home_seat_o,
    output home_t               home_o,
    output logic                put_o,          // one clock: seated, or given up
    output seated_t             put_seated_o,
    output logic                batch_valid_o,
    input  logic                batch_ready_i,
    output batch_t              batch_o
);
  typedef enum logic [3:0] {
    Idle,
    Entry,
    EntryWait,
    Next,        // of what the entry needs
    Ask,
    AskWait,
    Pause,
    PlaceBegin,
    Place,
    Move,
    Hand,
    Abort
  } state_e;

  // What an entry needs, one after another: three slots looked at or taken, two of them fetched, one remembered.
  typedef enum logic [2:0] {
    LookEncoder,
    LookSource,
    TakeDestination,
    MoveBank,
    MovePrediction,
    Remember,
    NoMore
  } need_e;

  state_e state_q;
  need_e  need_q;
  cut_t   cut_q;
  logic side_q, start_place, placing, needed, waits;
  logic [SeatW:0] seat_q, next_seat;
  logic [SeatW-1:0] seat;
  logic [2:0] pause_q;
  entry_words_t entry_q;
  logic enc_blank_q, blank_q;  // zeros to be read
  seats_t takes_q, predicts_q, starts_q, joints_q;
  logic [Seats-1:0][15:0] tokens_q;
  logic [63:0] addr;

  // The entry.
  logic greedy, joint, start, writes, in_place;
  logic [1:0] kind;
  logic [15:0] encoder, source, destination, slot;
  assign greedy = cut_q.work.operation == CmdGreedy;
  assign kind = entry_q[0][22:21];
  assign encoder = entry_q[0][15:0];
  assign source = greedy ? destination : entry_q[1][15:0];
  assign destination = greedy ? entry_q[3][15:0] : entry_q[1][31:16];
  assign joint = greedy || !entry_q[0][23];
  assign start = greedy ? entry_q[0][16] : kind == KindStart;
  assign writes = greedy || kind != KindNone;
  assign in_place = source == destination;

  always_comb begin
    unique case (need_q)
      LookEncoder:
      needed = joint && !greedy;  // a greedy one's has just been stored: younger batches may have it by now
      LookSource: needed = !greedy && kind == KindToken && !in_place;
      TakeDestination: needed = writes || joint;
      MoveBank: needed = joint;
      MovePrediction: needed = writes || joint;
      Remember: needed = writes;
      default: needed = 1'b0;
    endcase
  end

  // The next step's store, which goes to the other bank, is no reason to wait.
  assign waits = slot_i.busy && !(need_q == LookEncoder && slot_i.bank != entry_q[0][17]);

  assign seat = seat_q[SeatW-1:0];
  assign next_seat = seat_q + (SeatW + 1)'(1);
  assign side_o = side_q;
  assign idle_o = state_q == Idle;
  assign cut_ready_o = state_q == Idle && free_i && reached(
      (cut_i.work.operation == CmdGreedy) ? encodes_ended_i : encodes_i, cut_i.seat_mark
  );
  assign entry_valid_o = state_q == Entry;
  assign entry_index_o = cut_q.work.first + 16'(seat_q);

  assign slot_valid_o = state_q == Ask;
  always_comb begin
    unique case (need_q)
      LookEncoder, MoveBank: slot = encoder;
      LookSource, MovePrediction: slot = source;
      default: slot = destination;
    endcase
    slot_o = '{
        op: (need_q == TakeDestination && writes) ? SlotTake : SlotLook,
        prediction: need_q != LookEncoder,
        slot: slot,
        zeros: 1'b0,
        bank: 1'b0
    };
  end

  assign start_place = state_q == PlaceBegin;
  slot_place u_place (
      .clk_i,
      .rst_i,
      .places_i,
      .start_i(start_place),
      .prediction_i(need_q != MoveBank),
      .slot_i(slot),
      .busy_o(placing),
      .addr_o(addr)
  );

  // The bank to its copy; the prediction slot, or what section joint needs of it.
  move_tag_t tag;
  assign tag = '{seat: 6'(seat), decode: 1'b1, side: side_q};
  assign job_valid_o = state_q == Move && need_q != Remember;
  always_comb begin
    job_o = '{
        op: (start || blank_q) ? MoveZero : MoveFetch,
        addr: addr,
        act: act_place(ActPred, side_q, seat, '0),
        act_units: layout_i.pred_a_units,
        cell_unit: cell_place(CellPred, side_q, seat, '0),
        cell_units: layout_i.pred_c_units,
        tag: tag
    };
    if (need_q == MoveBank) begin
      job_o.op = enc_blank_q ? MoveZero : MoveFetch;
      job_o.addr = addr + 64'(layout_i.bank_bytes[entry_q[0][17]]);
      job_o.act_units = '0;
      job_o.cell_unit = cell_place(CellJoint, side_q, seat, '0);
      job_o.cell_units = layout_i.bank_units;
    end else if (!writes) begin
      job_o.addr = addr + 64'(layout_i.joint_pred_bytes);
      job_o.act_units = '0;
      job_o.cell_unit = cell_place(CellPred, side_q, seat, layout_i.joint_pred_unit);
      job_o.cell_units = layout_i.joint_pred_units;
    end
  end

  assign home_we_o = state_q == Move && need_q == Remember;
  assign home_seat_o = seat;
  assign home_o = '{slot: slot, addr: addr, fresh: 1'b0, bank: 1'b0};
  assign put_o = (state_q == Next && need_q == NoMore && next_seat == cut_q.count) || (state_q == Abort && !moving_i);
  assign seated_o = put_o;
  assign put_seated_o = '{
          work: cut_q.work.work,
          greedy: greedy,
          last: cut_q.last,
          index: cut_q.index,
          store_mark: '0,
          takes: takes_q,
          aborted: state_q == Abort,
          failure: NoFailure,
          entry: cut_q.index
      };

  assign batch_valid_o = state_q == Hand;
  seats_t all_seats;
  always_comb begin
    for (int unsigned n = 0; n < Seats; n++) all_seats[n] = n < 32'(cut_q.count);
    batch_o = '{
        operation: cut_q.work.operation,
        work: cut_q.work.work,
        side: side_q,
        index: cut_q.index,
        seats: all_seats,
        vectors: '0,
        predicts: predicts_q,
        starts: starts_q,
        joints: joints_q,
        tokens: tokens_q,
        k: cut_q.work.k,
        mode: cut_q.work.mode,
        named: cut_q.work.named,
        named_class: cut_q.work.named_class,
        temperature: cut_q.work.temperature,
        result: cut_q.work.result,
        result_stride: cut_q.work.result_stride
    };
  end

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Idle: begin
        cut_q <= cut_i;
        seat_q <= '0;
        takes_q <= '0;
        tokens_q <= '0;
        {predicts_q, starts_q, joints_q} <= '0;
        if (cut_valid_i && cut_ready_o) state_q <= failed_i[cut_i.work.work] ? Abort : Entry;
      end
      Entry: begin
        need_q <= LookEncoder;
        enc_blank_q <= 1'b0;
        blank_q <= 1'b0;
        if (entry_ready_i) state_q <= EntryWait;
      end
      EntryWait: begin
        if (entry_got_i) begin
          entry_q <= entry_i;
          state_q <= Next;
        end
      end
      Next: begin
        predicts_q[seat] <= greedy ? start : writes;
        starts_q[seat]   <= start;
        joints_q[seat]   <= joint;
        tokens_q[seat]   <= entry_q[2][15:0];
        if (need_q == NoMore) begin
          seat_q  <= next_seat;
          state_q <= (next_seat == cut_q.count) ? Hand : Entry;
        end else if (!needed) need_q <= need_e'(need_q + 3'd1);
        else state_q <= (need_q < MoveBank) ? Ask : PlaceBegin;
      end
      Ask: if (slot_ready_i) state_q <= AskWait;
      AskWait: begin
        pause_q <= '1;
        if (slot_got_i) begin
          if (waits) state_q <= Pause;
          else begin
            if (need_q == LookEncoder) enc_blank_q <= slot_i.blank;
            else if (need_q == LookSource || in_place) blank_q <= slot_i.blank;
            if (need_q == TakeDestination && writes) takes_q[seat] <= 1'b1;
            need_q  <= need_e'(need_q + 3'd1);
            state_q <= Next;
          end
        end
      end
      Pause: begin
        pause_q <= pause_q - 3'd1;
        if (pause_q == '0) state_q <= Ask;
      end
      PlaceBegin: state_q <= Place;
      Place: if (!placing) state_q <= Move;
      Move: begin
        if (need_q == Remember || job_ready_i) begin
          need_q  <= need_e'(need_q + 3'd1);
          state_q <= Next;
        end
      end
      Hand: begin
        if (batch_ready_i) begin
          side_q  <= !side_q;
          state_q <= Idle;
        end
      end
      default: begin
        if (!moving_i) begin
          side_q  <= !side_q;
          state_q <= Idle;
        end
      end
    endcase
    if (rst_i) begin
      state_q <= Idle;
      side_q  <= 1'b0;
    end
  end

  logic unused;
  assign unused = &{1'b0, layout_i, cut_q, entry_q};  // what other machines need
endmodule
