// SPDX-License-Identifier: Apache-2.0
// LOOKUP and JOINT for the seats of a batch, one job at a time, seat by seat: rows of the embedding, or zeros, come by the state mover, all of them asked for
// before the first is there; the joint is computed here.
module batch_aux
  import gharial_pkg::*;
  import seat_pkg::*;
#(
    parameter int unsigned Rows = gharial_config_pkg::Rows,
    parameter int unsigned Cols = gharial_config_pkg::Cols
) (
    input logic clk_i,
    input logic rst_i,

    input  logic                 job_valid_i,
    output logic                 job_ready_o,
    input  seat_aux_job_t        job_i,
    output logic                 done_o,       // one clock: all is readable
    output logic                 failed_o,     // a row could not be read
    output logic          [63:0] error_addr_o,

    // Stay until done.
    input logic   [Seats-1:0][15:0] tokens_i,
    input seats_t                   zeros_i,      // seats with zeros in place of their token's row
    input logic   [     63:0]       embed_base_i,

    output logic             move_valid_o,
    input  logic             move_ready_i,
    output move_job_t        move_o,
    input  logic             move_done_i,       // a fetch or zero of this unit
    input  logic             move_failed_i,
    input  logic      [63:0] move_error_addr_i,

    output logic                 cell_re_o,
    input  logic                 cell_ready_i,
    output logic [SeatCellW-1:0] cell_raddr_o,
    input  logic [   4*Rows-1:0] cell_rdata_i,

    output logic                act_we_o,
    input  logic                act_ready_i,
    output logic [SeatActW-1:0] act_waddr_o,
    output logic [  8*Cols-1:0] act_wdata_o,
    output logic [    Cols-1:0] act_wmask_o
);
  localparam int unsigned Halves = Rows / 4;
  localparam int unsigned Split = (Halves > Cols) ? Halves / Cols : 1;
  localparam int unsigned PerUnit = (Halves < Cols) ? Cols / Halves : 1;
  localparam int unsigned CountW = $clog2(Seats + 1);

  typedef enum logic [2:0] {
    Idle,
    Seat,      // the next one
    Multiply,  // its token by the units of a row
    Move,
    Joint,
    Wait,
    Done
  } state_e;

  state_e state_q;
  seat_aux_job_t job_q;
  seats_t left_q;  // seats, from the present one on
  logic [SeatW-1:0] seat_q;
  logic [15:0] token, token_left_q, units_left_q;
  logic [31:0] row_q, step_q;
  logic [SeatActW-1:0] target_q;
  logic [SeatCellW-1:0] enc_q, pred_q;
  logic [7:0] part_q;
  logic [CountW-1:0] moves_q;  // on their way
  logic zero_q, joint_ready, joint_idle, failed_q;
  logic [63:0] error_addr_q;

  assign job_ready_o = state_q == Idle;
  assign done_o = state_q == Done;
  assign failed_o = failed_q;
  assign error_addr_o = error_addr_q;

  assign move_valid_o = state_q == Move;
  always_comb begin
    move_o = '0;
    move_o.op = zero_q ? MoveZero : MoveFetch;
    move_o.addr = embed_base_i + 64'(row_q) * 64'(Cols);
    move_o.act = target_q;
    move_o.act_units = job_q.unit_count;
  end

  assign token = tokens_i[seat_q];

  always_ff @(posedge clk_i) begin
    moves_q <= moves_q + CountW'(move_valid_o && move_ready_i) - CountW'(move_done_i);
    if (move_done_i && move_failed_i && !failed_q) begin
      failed_q <= 1'b1;
      error_addr_q <= move_error_addr_i;
    end

    unique case (state_q)
      Idle: begin
        job_q <= job_i;
        left_q <= job_i.seats;
        seat_q <= '0;
        failed_q <= 1'b0;
        if (job_valid_i) state_q <= Seat;
      end
      Seat: begin
        zero_q <= job_q.row && zeros_i[seat_q];
        row_q <= job_q.embed_unit;
        step_q <= 32'(job_q.unit_count);
        token_left_q <= job_q.row ? token : '0;
        target_q <= job_q.destination + (SeatActW'(seat_q) << job_q.destination_shift);
        enc_q <= job_q.joint_enc + (SeatCellW'(seat_q) << job_q.joint_enc_shift);
        pred_q <= job_q.joint_pred + (SeatCellW'(seat_q) << job_q.joint_pred_shift);
        units_left_q <= job_q.unit_count;
        part_q <= '0;
        if (left_q == '0) state_q <= Wait;
        else if (left_q[0]) state_q <= job_q.joint ? Joint : Multiply;
        else begin
          left_q <= left_q >> 1;
          seat_q <= seat_q + SeatW'(1);
        end
      end
      Multiply: begin
        if (token_left_q[0]) row_q <= row_q + step_q;
        step_q <= step_q << 1;
        token_left_q <= token_left_q >> 1;
        if (zero_q || token_left_q == '0) state_q <= Move;
      end
      Move: begin
        if (move_ready_i) begin
          left_q[0] <= 1'b0;
          state_q   <= Seat;
        end
      end
      Joint: begin
        if (joint_ready) begin
          enc_q  <= enc_q + SeatCellW'(1);
          pred_q <= pred_q + SeatCellW'(1);
          part_q <= part_q + 8'd1;
          if (32'(part_q) == PerUnit - 1) begin
            part_q   <= '0;
            target_q <= target_q + SeatActW'(Split);
          end
          units_left_q <= units_left_q - 16'd1;
          if (units_left_q == 16'd1) begin
            left_q[0] <= 1'b0;
            state_q   <= Seat;
          end
        end
      end
      Wait: if (moves_q == '0 && joint_idle) state_q <= Done;
      default: state_q <= Idle;
    endcase

    if (rst_i) begin
      state_q <= Idle;
      moves_q <= '0;
    end
  end

  joint_stage #(
      .Rows(Rows),
      .Cols(Cols)
  ) u_joint (
      .clk_i,
      .rst_i,
      .ask_valid_i(state_q == Joint),
      .ask_ready_o(joint_ready),
      .enc_i(enc_q),
      .pred_i(pred_q),
      .target_i(target_q),
      .part_i(part_q),
      .shift_i(job_q.shift),
      .idle_o(joint_idle),
      .cell_re_o,
      .cell_ready_i,
      .cell_raddr_o,
      .cell_rdata_i,
      .act_we_o,
      .act_ready_i,
      .act_waddr_o,
      .act_wdata_o,
      .act_wmask_o
  );

  logic unused;
  assign unused = &{1'b0, job_q};  // bits above the regions
endmodule
