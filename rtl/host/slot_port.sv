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
  logic served_q;  // a zeroing is under way or just done: its request is still up

  always_comb begin
    user = ForMove;
    if (zero_valid_i[0]) user = ForEncode;
    else if (zero_valid_i[1]) user = ForDecode;
    else if (send_valid_i) user = ForSender;
  end

  assign job_valid_o = !served_q && (zero_valid_i[0] || zero_valid_i[1] || send_valid_i || move_valid_i);
  assign send_ready_o = job_ready_i && job_valid_o && user == ForSender;
  assign move_ready_o = job_ready_i && job_valid_o && user == ForMove;
  assign zero_done_o[0] = job_done_i && user_q == ForEncode;
  assign zero_done_o[1] = job_done_i && user_q == ForDecode;
  assign send_done_o = job_done_i && user_q == ForSender;
  assign move_done_o = job_done_i && user_q == ForMove;

  always_comb begin
    job_o = '0;  // zeroing: op SlotZero
    unique case (user)
      ForEncode: begin
        {job_o.act, job_o.cell_unit} = {zero_act_i[0], zero_cell_i[0]};
        {job_o.act_units, job_o.cell_units} = {header_i.enc_a_units, header_i.enc_c_units};
      end
      ForDecode: begin
        {job_o.act, job_o.cell_unit} = {zero_act_i[1], zero_cell_i[1]};
        {job_o.act_units, job_o.cell_units} = {header_i.pred_a_units, header_i.pred_c_units};
      end
      ForSender: job_o = send_i;
      default:   job_o = move_i;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (job_valid_o && job_ready_i) user_q <= user;
    if (rst_i) served_q <= 1'b0;
    else if (job_valid_o && job_ready_i) served_q <= 1'b1;
    else if (job_done_i) served_q <= 1'b0;
  end

  logic unused;
  assign unused = &{1'b0, header_i};  // fields of other blocks
endmodule
