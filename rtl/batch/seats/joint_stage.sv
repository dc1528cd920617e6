// SPDX-License-Identifier: Apache-2.0
// JOINT of batch aux: reads a cell unit of joint_enc and one of joint_pred, adds, rounds, clamps, and writes the int8 values: several activation units, one,
// or a part of one. Requests are cell units; reads wait for the port, results in a queue for theirs.
module joint_stage
  import seat_pkg::*;
#(
    parameter int unsigned Rows = gharial_config_pkg::Rows,
    parameter int unsigned Cols = gharial_config_pkg::Cols
) (
    input logic clk_i,
    input logic rst_i,

    input  logic                 ask_valid_i,
    output logic                 ask_ready_o,
    input  logic [SeatCellW-1:0] enc_i,
    input  logic [SeatCellW-1:0] pred_i,
    input  logic [ SeatActW-1:0] target_i,     // activation unit of its first value
    input  logic [          7:0] part_i,       // of that unit, where several cell units fill one
    input  logic [          3:0] shift_i,      // stays while anything is on its way
    output logic                 idle_o,       // all is written

    // Cells; data two clocks after a read that was ready.
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
  localparam int unsigned Halves = Rows / 4;  // values of a cell unit
  localparam int unsigned Split = (Halves > Cols) ? Halves / Cols : 1;  // activation units that they fill
  localparam int unsigned PerUnit = (Halves < Cols) ? Cols / Halves : 1;  // cell units that fill one
  localparam int unsigned Width = Cols / PerUnit;  // bytes written at once
  localparam int unsigned SplitW = (Split > 1) ? $clog2(Split) : 1;
  localparam int unsigned PartW = (PerUnit > 1) ? $clog2(PerUnit) : 1;
  localparam int unsigned Queue = 8;

  typedef struct packed {
    logic [SeatActW-1:0] unit_number;
    logic [PartW-1:0] part;
  } place_t;

  // Reads: joint_enc, then joint_pred.
  logic second_q, asks, asked, unit_asked, written;
  logic [$clog2(Queue+1)-1:0] room_q;  // places of the queue that nothing is on the way to
  assign asks = ask_valid_i && room_q != '0;
  assign cell_re_o = asks;
  assign cell_raddr_o = second_q ? pred_i : enc_i;
  assign asked = asks && cell_ready_i;
  assign unit_asked = asked && second_q;
  assign ask_ready_o = room_q != '0 && cell_ready_i && second_q;
  assign idle_o = 32'(room_q) == Queue;

  // By clocks after the last read: in 2 data arrive, in 3 they are summed, in 4 shifted.
  logic [4:1] asked_q;
  logic [2:1] first_q;  // joint_enc
  place_t place_q[1:4];
  logic [4*Rows-1:0] first_word_q;
  logic [15:7] large_q;  // bits of a sum that make its result 128 or more
  logic signed [Halves-1:0][16:0] sum_q;
  logic [Halves-1:0][8:0] shifted_q;  // the lowest bit is the rounding bit
  logic [Halves-1:0] over_q;
  logic [Halves-1:0][7:0] joint;

  always_ff @(posedge clk_i) begin
    if (asked) second_q <= !second_q;
    room_q  <= room_q + $bits(room_q)'(written) - $bits(room_q)'(unit_asked);
    asked_q <= {asked_q[3:1], unit_asked};
    first_q <= {first_q[1], asked && !second_q};
    if (first_q[2]) first_word_q <= cell_rdata_i;
    place_q[1] <= '{unit_number: target_i, part: PartW'(part_i)};
    for (int unsigned n = 2; n <= 4; n++) place_q[n] <= place_q[n-1];
    for (int unsigned b = 7; b < 16; b++) large_q[b] <= b >= 32'(shift_i) + 7;
    if (rst_i) begin
      second_q <= 1'b0;
      asked_q  <= '0;
      room_q   <= Queue[$bits(room_q)-1:0];
    end
  end

  // A negative sum gives 0 whatever its shift: it goes on as 0.
  always_ff @(posedge clk_i) begin
    if (asked_q[2]) begin
      for (int unsigned n = 0; n < Halves; n++) begin
        sum_q[n] <= 17'(signed'(first_word_q[16*n+:16])) + 17'(signed'(cell_rdata_i[16*n+:16]));
      end
    end
    if (asked_q[3]) begin
      for (int unsigned n = 0; n < Halves; n++) begin
        shifted_q[n] <= sum_q[n][16] ? '0 : 9'({sum_q[n][15:0], 1'b0} >> shift_i);
        over_q[n] <= !sum_q[n][16] && (sum_q[n][15:7] & large_q) != '0;
      end
    end
  end
  always_comb begin
    for (int unsigned n = 0; n < Halves; n++) begin
      joint[n] = shifted_q[n][8:1] + 8'(shifted_q[n][0]);
      if (over_q[n] || joint[n][7]) joint[n] = 8'd127;
    end
  end

  logic queue_room, queue_valid, queue_taken;
  place_t place;
  logic [8*Halves-1:0] values;
  small_fifo #(
      .Width(8 * Halves + $bits(place_t)),
      .Depth(Queue)
  ) u_queue (
      .clk_i,
      .rst_i,
      .push_valid_i(asked_q[4]),
      .push_ready_o(queue_room),
      .push_data_i ({place_q[4], joint}),
      .pop_valid_o (queue_valid),
      .pop_ready_i (queue_taken),
      .pop_data_o  ({place, values})
  );

  logic [SplitW-1:0] split_q;
  assign act_we_o = queue_valid;
  assign act_waddr_o = place.unit_number + SeatActW'(split_q);
  assign written = queue_valid && queue_taken;
  assign queue_taken = act_ready_i && 32'(split_q) == Split - 1;
  always_comb begin
    for (int unsigned n = 0; n < PerUnit; n++) begin
      act_wdata_o[8*Width*n+:8*Width] = values[8*Width*split_q+:8*Width];
      act_wmask_o[Width*n+:Width] = {Width{32'(place.part) == n}};
    end
  end
  always_ff @(posedge clk_i) begin
    if (act_we_o && act_ready_i) split_q <= queue_taken ? '0 : split_q + SplitW'(1);
    if (rst_i) split_q <= '0;
  end

  logic unused;
  assign unused = &{1'b0, part_i, queue_room};  // never full
endmodule
