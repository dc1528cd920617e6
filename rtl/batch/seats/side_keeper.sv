// SPDX-License-Identifier: Apache-2.0
// Keeps the two sides of a thread from the seating of a batch to its end: whether its state has been fetched, and when it has run, stores the seats' state,
// leaves their slots, and tells the end. Batches end in the order of their seating.
module side_keeper
  import gharial_pkg::*;
  import host_pkg::*;
  import seat_pkg::*;
  import seater_pkg::*;
#(
    parameter bit Decode = 1'b0
) (
    input logic clk_i,
    input logic rst_i,

    input layout_t layout_i,

    // From the seater of this thread.
    input  logic                side_i,       // that it works on
    output logic                free_o,       // that side
    output logic                moving_o,     // fetches of that side are on their way
    input  logic                job_taken_i,  // a fetch more
    input  logic                home_we_i,
    input  logic    [SeatW-1:0] home_seat_i,
    input  home_t               home_i,
    input  logic                put_i,        // one clock
    input  seated_t             put_seated_i,

    // The thread.
    output logic        [1:0] fetched_o,
    input  logic              done_valid_i,
    output logic              done_ready_o,
    input  batch_done_t       done_i,

    // Stores, and ends of moves.
    input  mark_t            seated_i,        // decode batches seated so far: encode batches wait for them
    output logic             job_valid_o,
    input  logic             job_ready_i,
    output move_job_t        job_o,
    input  logic             fetch_done_i,    // one of the seater's
    input  move_tag_t        fetch_tag_i,
    input  logic             fetch_failed_i,
    input  logic      [31:0] fetch_addr_i,
    input  logic             store_done_i,
    input  move_tag_t        store_tag_i,
    input  logic             store_failed_i,
    input  logic      [31:0] store_addr_i,

    // Slots, ends.
    output logic       slot_valid_o,
    input  logic       slot_ready_i,
    output slot_ask_t  slot_o,
    input  logic       slot_got_i,
    output logic       end_valid_o,
    input  logic       end_ready_i,
    output work_done_t end_o,
    output logic       fail_o,        // one clock: the command named by end_o has failed
    output logic       ended_o,       // one clock: a batch has ended
    output logic       idle_o
);
  localparam int unsigned MovesW = 9;

  typedef enum logic [3:0] {
    Wait,
    Judge,  // whether it is stored
    Seat,
    Lower,
    Upper,
    Bank,
    Other,
    Answers,
    Leave,
    LeaveAsk,
    LeaveWait,
    End
  } state_e;

  state_e state_q;
  seated_t seated_q[2], now_q;
  logic [1:0] valid_q, lost_q;  // lost: a fetch has failed
  logic [1:0][MovesW-1:0] fetches_q;
  logic [1:0][31:0] lost_addr_q;
  logic [1:0][5:0] lost_seat_q;
  logic side_q, ran, fetch_mine, store_mine;
  logic [MovesW-1:0] stores_q;
  failure_t failure_q;
  logic [15:0] entry_q, predictions_q, joints_q;
  seats_t left_q;
  logic [SeatW-1:0] seat_q;
  home_t home;

  assign free_o = !valid_q[side_i];
  assign moving_o = fetches_q[side_i] != '0;
  assign idle_o = valid_q == '0 && state_q == Wait;
  assign fetch_mine = fetch_done_i && fetch_tag_i.decode == Decode;
  assign store_mine = store_done_i && store_tag_i.decode == Decode;

  lut_ram #(
      .Width($bits(home_t)),
      .Words(2 * Seats)
  ) u_homes (
      .clk_i,
      .we_i(home_we_i),
      .waddr_i({home_seat_i, side_i}),
      .wdata_i(home_i),
      .raddr_i({seat_q, side_q}),
      .rdata_o(home)
  );

  // Sides.
  always_ff @(posedge clk_i) begin
    for (int unsigned s = 0; s < 2; s++) begin
      fetches_q[s] <= fetches_q[s] + MovesW'(job_taken_i && 32'(side_i) == s) - MovesW'(fetch_mine && 32'(fetch_tag_i.side) == s);
      fetched_o[s] <= valid_q[s] && !seated_q[s].aborted && fetches_q[s] == '0 && !(ran && 32'(side_q) == s);
      if (fetch_mine && fetch_failed_i && 32'(fetch_tag_i.side) == s && !lost_q[s]) begin
        lost_q[s] <= 1'b1;
        lost_addr_q[s] <= fetch_addr_i;
        lost_seat_q[s] <= fetch_tag_i.seat;
      end
    end
    if (put_i) begin
      seated_q[side_i] <= put_seated_i;
      valid_q[side_i]  <= 1'b1;
    end
    if (ended_o) begin
      valid_q[side_q] <= 1'b0;
      lost_q[side_q]  <= 1'b0;
    end
    if (rst_i) begin
      valid_q   <= '0;
      lost_q    <= '0;
      fetches_q <= '0;
      fetched_o <= '0;
    end
  end

  // The older side's batch: its run, or that it was given up.
  assign done_ready_o = state_q == Wait && valid_q[side_q] && !seated_q[side_q].aborted;
  assign ran = state_q != Wait;

  move_tag_t tag;
  assign tag = '{seat: 6'(seat_q), decode: Decode, side: side_q};
  assign job_valid_o = state_q == Lower || state_q == Upper || state_q == Bank || state_q == Other;
  always_comb begin
    job_o = '{
        op: MoveStore,
        addr: home.addr,
        act: act_place(Decode ? ActPred : ActEnc, side_q, seat_q, '0),
        act_units: Decode ? layout_i.pred_a_units : layout_i.enc_a_units,
        cell_unit: cell_place(Decode ? CellPred : CellEnc, side_q, seat_q, '0),
        cell_units: Decode ? layout_i.pred_c_units : layout_i.enc_lower_units,
        tag: tag
    };
    if (state_q != Lower) begin
      job_o.act_units  = '0;
      job_o.cell_units = layout_i.bank_units;
    end
    unique case (state_q)
      Upper: begin
        job_o.addr = home.addr + 64'(layout_i.upper_bytes);
        job_o.cell_unit = cell_place(CellEnc, side_q, seat_q, layout_i.upper_unit);
        job_o.cell_units = layout_i.enc_upper_units;
      end
      Bank: begin
        job_o.addr = home.addr + 64'(layout_i.bank_bytes[home.bank]);
        job_o.cell_unit = cell_place(CellEnc, side_q, seat_q, layout_i.bank_unit);
      end
      Other: begin  // zeros, from bank 1's place
        job_o.addr = home.addr + 64'(layout_i.bank_bytes[!home.bank]);
        job_o.cell_unit = cell_place(CellEnc, side_q, seat_q, layout_i.bank_unit + layout_i.bank_units);
      end
      default: ;
    endcase
  end

  assign slot_valid_o = state_q == LeaveAsk;
  assign slot_o = '{op: SlotLeave, prediction: Decode, slot: home.slot, zeros: 1'b0, bank: 1'b0};

  // Every batch tells its end, but the encode part of a GREEDY only if it failed: its decode part tells the rest.
  logic tells;
  assign tells = !now_q.greedy || Decode || failure_q.fault != FaultNone;
  assign end_valid_o = state_q == End && tells;
  assign ended_o = state_q == End && (!tells || end_ready_i);
  assign fail_o = ended_o && failure_q.fault != FaultNone;
  assign end_o = '{
          work: now_q.work,
          last: now_q.last && !(now_q.greedy && !Decode),
          fault: failure_q.fault,
          unit: failure_q.unit,
          detail: failure_q.detail,
          entry: entry_q,
          predictions: predictions_q,
          joints: joints_q
      };

  always_ff @(posedge clk_i) begin
    stores_q <= stores_q + MovesW'(job_valid_o && job_ready_i) - MovesW'(store_mine);
    if (store_mine && store_failed_i && failure_q.fault == FaultNone) begin
      failure_q <= '{fault: FaultBusWrite, unit: UnitMemory, detail: store_addr_i};
      entry_q   <= '0;  // writes are answered late
    end

    unique case (state_q)
      Wait: begin
        now_q <= seated_q[side_q];
        seat_q <= '0;
        left_q <= seated_q[side_q].takes;
        failure_q <= NoFailure;
        entry_q <= '0;
        predictions_q <= '0;
        joints_q <= '0;
        if (valid_q[side_q] && seated_q[side_q].aborted) begin
          failure_q <= seated_q[side_q].failure;
          entry_q   <= (seated_q[side_q].failure.fault == FaultNone) ? '0 : seated_q[side_q].entry;
          state_q   <= Leave;
        end else if (done_valid_i && done_ready_o) begin
          predictions_q <= done_i.predictions;
          joints_q <= done_i.joints;
          if (lost_q[side_q]) begin
            failure_q <= '{fault: FaultBusRead, unit: UnitMemory, detail: lost_addr_q[side_q]};
            entry_q   <= seated_q[side_q].index + 16'(lost_seat_q[side_q]);
          end else if (done_i.fault != FaultNone) begin
            failure_q <= '{fault: done_i.fault, unit: done_i.unit, detail: done_i.detail};
            entry_q   <= seated_q[side_q].index + done_i.entry;
          end
          state_q <= Judge;
        end
      end
      Judge: begin
        if (failure_q.fault != FaultNone) state_q <= Leave;
        else if (Decode || reached(seated_i, now_q.store_mark)) state_q <= Seat;
      end
      Seat: begin
        if (left_q == '0) state_q <= Answers;
        else if (left_q[0]) state_q <= Lower;
        else begin
          left_q <= left_q >> 1;
          seat_q <= seat_q + SeatW'(1);
        end
      end
      Lower: begin
        if (job_ready_i) begin
          left_q[0] <= 1'b0;
          state_q   <= Decode ? Seat : (layout_i.enc_upper_units != '0) ? Upper : Bank;
        end
      end
      Upper: if (job_ready_i) state_q <= Bank;
      Bank: if (job_ready_i) state_q <= home.fresh ? Other : Seat;
      Other: if (job_ready_i) state_q <= Seat;
      Answers: begin
        seat_q <= '0;
        left_q <= now_q.takes;
        if (stores_q == '0) state_q <= Leave;
      end
      Leave: begin
        if (left_q == '0) state_q <= End;
        else if (left_q[0]) state_q <= LeaveAsk;
        else begin
          left_q <= left_q >> 1;
          seat_q <= seat_q + SeatW'(1);
        end
      end
      LeaveAsk: if (slot_ready_i) state_q <= LeaveWait;
      LeaveWait: begin
        if (slot_got_i) begin
          left_q[0] <= 1'b0;
          state_q   <= Leave;
        end
      end
      default: begin
        if (ended_o) begin
          side_q  <= !side_q;
          state_q <= Wait;
        end
      end
    endcase

    if (rst_i) begin
      state_q  <= Wait;
      side_q   <= 1'b0;
      stores_q <= '0;
    end
  end

  logic unused;
  assign unused = &{1'b0, layout_i, done_i.side, now_q, seated_i, store_tag_i, fetch_tag_i};
endmodule
