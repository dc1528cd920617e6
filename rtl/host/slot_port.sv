// SPDX-License-Identifier: Apache-2.0
// Who may use the slot engine: one job at a time, the sequencer's zeroing first.
module slot_port
  import gharial_pkg::*;
  import host_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    input header_t header_i,

    // Zeroing an encoder slot (E stage) or a prediction slot (D stage).
    input  logic                 zero_valid_i[2],
    input  logic [ ActAddrW-1:0] zero_act_i  [2],
    input  logic [CellAddrW-1:0] zero_cell_i [2],
    output logic                 zero_done_o [2],

    // Features.
    input  logic      send_valid_i,
    output logic      send_ready_o,
    input  slot_job_t send_i,
    output logic      send_done_o,

    // Slot commands.
    input  logic      move_valid_i,
    output logic      move_ready_o,
    input  slot_job_t move_i,
    output logic      move_done_o,

    // The engine.
    output logic      job_valid_o,
    input  logic      job_ready_i,
    output slot_job_t job_o,
    input  logic      job_done_i
);
  typedef enum logic [1:0] {
    ForEncode,
    ForDecode,
    ForSender,
    ForMove
  } user_e;

  user_e user, user_q;
  slot_job_t job;
  logic busy_q;  // a job waits for the engine, is under way or just done: the request of a zeroing is still up
  logic take;

  always_comb begin
    user = ForMove;
    if (zero_valid_i[0]) user = ForEncode;
    else if (zero_valid_i[1]) user = ForDecode;
    else if (send_valid_i) user = ForSender;
  end

  assign take = !busy_q && (zero_valid_i[0] || zero_valid_i[1] || send_valid_i || move_valid_i);
  assign send_ready_o = take && user == ForSender;
  assign move_ready_o = take && user == ForMove;
  assign zero_done_o[0] = job_done_i && user_q == ForEncode;
  assign zero_done_o[1] = job_done_i && user_q == ForDecode;
  assign send_done_o = job_done_i && user_q == ForSender;
  assign move_done_o = job_done_i && user_q == ForMove;

  always_comb begin
    job = '0;  // zeroing: op SlotZero
    unique case (user)
      ForEncode: begin
        {job.act, job.cell_unit} = {zero_act_i[0], zero_cell_i[0]};
        {job.act_units, job.cell_units} = {header_i.enc_a_units, header_i.enc_c_units};
      end
      ForDecode: begin
        {job.act, job.cell_unit} = {zero_act_i[1], zero_cell_i[1]};
        {job.act_units, job.cell_units} = {header_i.pred_a_units, header_i.pred_c_units};
      end
      ForSender: job = send_i;
      default:   job = move_i;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      user_q <= user;
      job_o  <= job;
    end
    if (rst_i) begin
      busy_q <= 1'b0;
      job_valid_o <= 1'b0;
    end else begin
      if (take) busy_q <= 1'b1;
      else if (job_done_i) busy_q <= 1'b0;
      job_valid_o <= take || (job_valid_o && !job_ready_i);
    end
  end

  logic unused;
  assign unused = &{1'b0, header_i};  // fields of other blocks
endmodule
