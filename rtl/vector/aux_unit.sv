// SPDX-License-Identifier: Apache-2.0
// LOOKUP and JOINT, one job at a time: activation units from the embedding, or the joint of two int16 vectors of the cell memory, written to scratch.
//
// Reads go out as fast as the memories take them; results wait in a queue for the activation memory's write port. A unit's result is in the
// queue two (LOOKUP) or four clocks (JOINT) after its last read.
module aux_unit
  import gharial_pkg::*;
  import sequencer_pkg::*;
#(
    parameter int unsigned Rows = gharial_config_pkg::Rows,
    parameter int unsigned Cols = gharial_config_pkg::Cols
) (
    input logic clk_i,
    input logic rst_i,

    input  logic     job_valid_i,
    output logic     job_ready_o,
    input  aux_job_t job_i,
    output logic     done_o,       // one clock: all is written with this clock

    // Embedding memory; data two clocks later.
    output logic              embed_en_o,
    output logic [      31:0] embed_addr_o,  // activation unit
    input  logic [8*Cols-1:0] embed_data_i,

    // Cell memory; data two clocks after a read that was ready.
    output logic                 cell_re_o,
    input  logic                 cell_ready_i,
    output logic [CellAddrW-1:0] cell_raddr_o,
    input  logic [   4*Rows-1:0] cell_rdata_i,

    // Activation memory.
    output logic                act_we_o,
    input  logic                act_ready_i,
    output logic [ActAddrW-1:0] act_waddr_o,
    output logic [  8*Cols-1:0] act_wdata_o,
    output logic [    Cols-1:0] act_wmask_o
);
  localparam int unsigned Halves = Rows / 4;  // values of a cell unit
  localparam int unsigned PerUnit = (Halves < Cols) ? Cols / Halves : 1;  // cell units whose results fill an activation unit
  localparam int unsigned Queue = 8;

  if (Halves > Cols) begin : gen_check
    $error("%m: a cell unit's results must fit in an activation unit");
  end

  // The job at work: where its next reads and its next write go, and how many units are left of each.
  logic busy_q, joint_q, zero_q, second_q;
  logic [31:0] embed_q;
  logic [CellAddrW-1:0] enc_q, pred_q;
  logic [ActAddrW-1:0] target_q;
  logic [15:0] to_ask_q, to_write_q;
  logic [3:0] shift_q;
  logic [15:7] large_q;  // bits of a sum that make its result 128 or more
  logic [$clog2(PerUnit+1)-1:0] part_q;  // of the activation unit at target_q
  logic [$clog2(Queue+1)-1:0] room_q, room_d;  // places of the queue that nothing is on the way to
  logic more_q, free_q;  // to_ask_q and room_q are not 0
  logic asks, asked, ask_ready, unit_asked, written;

  assign job_ready_o = !busy_q;
  assign asks = more_q && free_q;
  assign room_d = room_q + $bits(room_q)'(written) - $bits(room_q)'(unit_asked);
  assign embed_en_o = asks && !joint_q;
  assign embed_addr_o = embed_q;
  assign asked = asks && (!joint_q || ask_ready);
  assign unit_asked = asked && (!joint_q || second_q);

  // Reads of cells wait in a queue, so that nothing but that depends on the port's other users.
  logic cell_second, cell_read;
  small_fifo #(
      .Width(CellAddrW + 1),
      .Depth(2)
  ) u_asks (
      .clk_i,
      .rst_i,
      .push_valid_i(asks && joint_q),
      .push_ready_o(ask_ready),
      .push_data_i ({second_q, second_q ? pred_q : enc_q}),
      .pop_valid_o (cell_re_o),
      .pop_ready_i (cell_ready_i),
      .pop_data_o  ({cell_second, cell_raddr_o})
  );
  assign cell_read = cell_re_o && cell_ready_i;
  assign written = act_we_o && act_ready_i;
  assign done_o = written && to_write_q == 16'd1;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      busy_q <= 1'b0;
      more_q <= 1'b0;
      free_q <= 1'b1;
      room_q <= Queue[$bits(room_q)-1:0];
    end else begin
      if (job_ready_o) busy_q <= job_valid_i;
      else if (done_o) busy_q <= 1'b0;
      if (job_ready_o) more_q <= job_valid_i;
      else if (unit_asked) more_q <= to_ask_q != 16'd1;
      free_q <= room_d != '0;
      room_q <= room_d;
    end

    if (job_ready_o) begin
      joint_q <= job_i.joint;
      zero_q <= job_i.zero;
      second_q <= 1'b0;
      embed_q <= job_i.embed_unit;
      enc_q <= job_i.joint_enc;
      pred_q <= job_i.joint_pred;
      target_q <= job_i.destination;
      to_ask_q <= job_i.unit_count;
      to_write_q <= job_i.unit_count;
      shift_q <= job_i.shift;
      part_q <= '0;
      for (int unsigned b = 7; b < 16; b++) large_q[b] <= b >= 32'(job_i.shift) + 7;
    end else begin
      if (asked) second_q <= joint_q && !second_q;
      if (unit_asked) begin
        embed_q  <= embed_q + 32'd1;
        enc_q    <= enc_q + 16'd1;
        pred_q   <= pred_q + 16'd1;
        to_ask_q <= to_ask_q - 16'd1;
      end
      if (written) begin
        to_write_q <= to_write_q - 16'd1;
        if (!joint_q || 32'(part_q) == PerUnit - 1) begin
          part_q   <= '0;
          target_q <= target_q + 16'd1;
        end else part_q <= part_q + 1'b1;
      end
    end
  end

  // Data, by clocks after the last request: in 2 they arrive; those of JOINT are summed in 3 and shifted in 4.
  logic [4:1] asked_q;
  logic [2:1] first_q;  // joint_enc
  logic [4*Rows-1:0] first_word_q;
  logic [Halves-1:0][7:0] joint;

  always_ff @(posedge clk_i) begin
    asked_q <= rst_i ? '0 : {asked_q[3:1], joint_q ? cell_read && cell_second : unit_asked};
    first_q <= {first_q[1], cell_read && !cell_second};
    if (first_q[2]) first_word_q <= cell_rdata_i;
  end

  for (genvar n = 0; n < Halves; n++) begin : gen_value
    logic signed [16:0] sum_q;
    logic [16:0] wide, shifted;
    logic [8:0] shifted_q;  // the lowest bit is the rounding bit
    logic over_q;
    logic [7:0] rounded;

    assign wide = {unsigned'(sum_q[15:0]), 1'b0};
    assign shifted = wide >> shift_q;

    // A negative sum gives 0 whatever its shift: it goes on as 0.
    always_ff @(posedge clk_i) begin
      sum_q <= 17'(signed'(first_word_q[16*n+:16])) + 17'(signed'(cell_rdata_i[16*n+:16]));
      shifted_q <= sum_q[16] ? '0 : shifted[8:0];
      over_q <= !sum_q[16] && (unsigned'(sum_q[15:7]) & large_q) != '0;
    end

    assign rounded  = shifted_q[8:1] + 8'(shifted_q[0]);
    assign joint[n] = (over_q || rounded[7]) ? 8'd127 : rounded;

    logic unused_upper;
    assign unused_upper = &{1'b0, shifted[16:9]};  // large_q stands for them
  end

  // Results wait for the port: those of JOINT at the lower end of the word, for whichever part of an activation unit they are.
  logic [8*Cols-1:0] made, queued;
  logic room;

  always_comb begin
    made = zero_q ? '0 : embed_data_i;
    if (joint_q) made[8*Halves-1:0] = joint;
  end

  small_fifo #(
      .Width(8 * Cols),
      .Depth(Queue)
  ) u_queue (
      .clk_i,
      .rst_i,
      .push_valid_i(joint_q ? asked_q[4] : asked_q[2]),
      .push_ready_o(room),
      .push_data_i (made),
      .pop_valid_o (act_we_o),
      .pop_ready_i (act_ready_i),
      .pop_data_o  (queued)
  );

  assign act_waddr_o = target_q;

  for (genvar part = 0; part < PerUnit; part++) begin : gen_part
    localparam int unsigned Width = Cols / PerUnit;
    assign act_wdata_o[8*Width*part+:8*Width] = joint_q ? queued[8*Width-1:0] : queued[8*Width*part+:8*Width];
    assign act_wmask_o[Width*part+:Width] = {Width{!joint_q || 32'(part_q) == part}};
  end

`ifdef FORMAL
  always_ff @(posedge clk_i) begin
    if (!rst_i && (joint_q ? asked_q[4] : asked_q[2])) a_room : assert (room);
  end
`else
  logic unused;
  assign unused = room;
`endif  // FORMAL
endmodule
