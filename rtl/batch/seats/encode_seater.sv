// SPDX-License-Identifier: Apache-2.0
// Seats encode batches: for each entry takes its slot, has its state fetched, brings its features, then hands the batch to the encode thread. Where features
// are bad the batch does not run.
module encode_seater
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
  import seat_pkg::*;
  import seater_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    input header_t header_i,
    input places_t places_i,
    input layout_t layout_i,

    input  logic              cut_valid_i,
    output logic              cut_ready_o,
    input  cut_t              cut_i,
    input  logic  [Works-1:0] failed_i,     // commands that have failed
    input  mark_t             decodes_i,    // decode batches seated so far
    output logic              seated_o,     // one clock: one more is
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

    // Features.
    output logic                    load_o,
    output logic     [        63:0] load_addr_o,
    output logic     [        15:0] load_units_o,
    output logic     [        15:0] load_pad_o,
    output logic     [SeatActW-1:0] load_target_o,
    output logic                    load_checked_o,
    output logic     [        31:0] load_crc_o,
    input  logic                    loaded_i,
    input  failure_t                load_failure_i,

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
    Take,
    TakeWait,
    Pause,
    Place,
    Fetch,
    Upper,
    Load,
    Loading,
    Hand,
    Abort
  } state_e;

  state_e state_q;
  cut_t   cut_q;
  logic side_q, fresh_q, placing, start_place;
  logic [SeatW:0] seat_q, next_seat;
  logic [SeatW-1:0] seat;
  logic [2:0] pause_q;
  entry_words_t entry_q;
  seats_t takes_q;
  logic [Seats-1:0][2:0] vectors_q;
  failure_t failure_q;
  logic [63:0] addr;
  logic [2:0] vectors;
  logic [15:0] slot;

  assign seat = seat_q[SeatW-1:0];
  assign next_seat = seat_q + (SeatW + 1)'(1);
  assign vectors = entry_q[0][20:18];
  assign slot = entry_q[0][15:0];
  assign side_o = side_q;
  assign idle_o = state_q == Idle;
  assign cut_ready_o = state_q == Idle && free_i && reached(decodes_i, cut_i.seat_mark);

  assign entry_valid_o = state_q == Entry;
  assign entry_index_o = cut_q.work.first + 16'(seat_q);
  assign slot_valid_o = state_q == Take;
  assign slot_o = '{op: SlotTake, prediction: 1'b0, slot: slot, zeros: entry_q[0][16], bank: entry_q[0][17]};

  assign start_place = state_q == TakeWait && slot_got_i && !slot_i.busy;
  slot_place u_place (
      .clk_i,
      .rst_i,
      .places_i,
      .start_i(start_place),
      .prediction_i(1'b0),
      .slot_i(slot),
      .busy_o(placing),
      .addr_o(addr)
  );

  // Its state without the banks, or zeros.
  move_tag_t tag;
  assign tag = '{seat: 6'(seat), decode: 1'b0, side: side_q};
  assign job_valid_o = state_q == Fetch || state_q == Upper;
  always_comb begin
    job_o = '{
        op: fresh_q ? MoveZero : MoveFetch,
        addr: addr,
        act: act_place(ActEnc, side_q, seat, '0),
        act_units: layout_i.enc_a_units,
        cell_unit: cell_place(CellEnc, side_q, seat, '0),
        cell_units: fresh_q ? layout_i.enc_c_units : layout_i.enc_lower_units,
        tag: tag
    };
    if (state_q == Upper) begin
      job_o.addr = addr + 64'(layout_i.upper_bytes);
      job_o.act_units = '0;
      job_o.cell_unit = cell_place(CellEnc, side_q, seat, layout_i.upper_unit);
      job_o.cell_units = layout_i.enc_upper_units;
    end
  end

  function automatic logic [15:0] times(input logic [15:0] value, input logic [2:0] factor);
    return (factor[2] ? value << 2 : '0) + (factor[1] ? value << 1 : '0) + (factor[0] ? value : '0);
  endfunction
  assign load_o = state_q == Load;
  always_ff @(posedge clk_i) begin  // the entry has been there for long
    load_addr_o   <= cut_q.work.features + 64'(entry_q[1]);
    load_units_o  <= times(header_i.feature_units, vectors);
    load_pad_o    <= times(header_i.feature_units, header_i.vectors - vectors);
    load_target_o <= act_place(ActScratch, side_q, seat, header_i.feature_unit);
  end
  assign load_checked_o = cut_q.work.checked;
  assign load_crc_o = entry_q[2];

  assign home_we_o = state_q == Fetch;
  assign home_seat_o = seat;
  assign home_o = '{slot: slot, addr: addr, fresh: fresh_q, bank: entry_q[0][17]};
  assign put_o = (state_q == Loading && loaded_i && load_failure_i.fault == FaultNone && next_seat == cut_q.count) || (state_q == Abort && !moving_i);
  assign seated_o = put_o;
  assign put_seated_o = '{
          work: cut_q.work.work,
          greedy: cut_q.work.operation == CmdGreedy,
          last: cut_q.last,
          index: cut_q.index,
          store_mark: cut_q.store_mark,
          takes: takes_q,
          aborted: state_q == Abort,
          failure: failure_q,
          entry: cut_q.index + 16'(seat_q)
      };

  assign batch_valid_o = state_q == Hand;
  always_comb begin
    batch_o = '0;
    batch_o.operation = cut_q.work.operation;
    batch_o.work = cut_q.work.work;
    batch_o.side = side_q;
    batch_o.index = cut_q.index;
    batch_o.seats = takes_q;
    batch_o.vectors = vectors_q;
  end

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Idle: begin
        cut_q <= cut_i;
        seat_q <= '0;
        takes_q <= '0;
        vectors_q <= '0;
        failure_q <= NoFailure;
        if (cut_valid_i && cut_ready_o) state_q <= failed_i[cut_i.work.work] ? Abort : Entry;
      end
      Entry: if (entry_ready_i) state_q <= EntryWait;
      EntryWait: begin
        if (entry_got_i) begin
          entry_q <= entry_i;
          state_q <= Take;
        end
      end
      Take:  if (slot_ready_i) state_q <= TakeWait;
      TakeWait: begin
        pause_q <= '1;
        fresh_q <= slot_i.blank || entry_q[0][16];
        if (slot_got_i) state_q <= slot_i.busy ? Pause : Place;
      end
      Pause: begin
        pause_q <= pause_q - 3'd1;
        if (pause_q == '0) state_q <= Take;
      end
      Place: begin
        takes_q[seat]   <= 1'b1;
        vectors_q[seat] <= vectors;
        if (!placing) state_q <= Fetch;
      end
      Fetch: if (job_ready_i) state_q <= (fresh_q || layout_i.enc_upper_units == '0) ? Load : Upper;
      Upper: if (job_ready_i) state_q <= Load;
      Load:  state_q <= Loading;
      Loading: begin
        if (loaded_i) begin
          failure_q <= load_failure_i;
          if (load_failure_i.fault != FaultNone) state_q <= Abort;
          else begin
            seat_q  <= next_seat;
            state_q <= (next_seat == cut_q.count) ? Hand : Entry;
          end
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
  assign unused = &{1'b0, header_i, layout_i, cut_q, entry_q, slot_i.bank};  // what other machines need
endmodule
