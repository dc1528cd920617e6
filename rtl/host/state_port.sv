// SPDX-License-Identifier: Apache-2.0
// Everything that moves whole state: the slot engine, and who may use it.
module state_port
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    input header_t header_i,

    // Zeroing of slots: E stage, D stage.
    input  logic                 zero_valid_i[2],
    input  logic [ ActAddrW-1:0] zero_act_i  [2],
    input  logic [CellAddrW-1:0] zero_cell_i [2],
    output logic                 zero_done_o [2],

    // Features, and slot commands.
    input  logic      send_valid_i,
    output logic      send_ready_o,
    input  slot_job_t send_i,
    output logic      send_done_o,
    input  logic      move_valid_i,
    output logic      move_ready_o,
    input  slot_job_t move_i,
    output logic      move_done_o,

    // Words in, words out.
    input  logic          data_valid_i,
    output logic          data_ready_o,
    input  logic   [31:0] data_i,
    output logic          save_valid_o,
    input  logic          save_ready_i,
    output write_t        save_o,

    // The memories.
    output logic                 act_re_o,
    input  logic                 act_re_ready_i,
    output logic [ ActAddrW-1:0] act_raddr_o,
    input  logic [   8*Cols-1:0] act_rdata_i,
    output logic                 act_we_o,
    input  logic                 act_ready_i,
    output logic [ ActAddrW-1:0] act_waddr_o,
    output logic [   8*Cols-1:0] act_wdata_o,
    output logic                 cell_re_o,
    input  logic                 cell_re_ready_i,
    output logic [CellAddrW-1:0] cell_raddr_o,
    input  logic [   4*Rows-1:0] cell_rdata_i,
    output logic                 cell_we_o,
    input  logic                 cell_ready_i,
    output logic [CellAddrW-1:0] cell_waddr_o,
    output logic [   4*Rows-1:0] cell_wdata_o
);
  logic job_valid, job_ready, job_done;
  slot_job_t job;

  slot_port u_port (
      .clk_i,
      .rst_i,
      .header_i,
      .zero_valid_i,
      .zero_act_i,
      .zero_cell_i,
      .zero_done_o,
      .send_valid_i,
      .send_ready_o,
      .send_i,
      .send_done_o,
      .move_valid_i,
      .move_ready_o,
      .move_i,
      .move_done_o,
      .job_valid_o(job_valid),
      .job_ready_i(job_ready),
      .job_o(job),
      .job_done_i(job_done)
  );

  slot_engine #(
      .Rows(Rows),
      .Cols(Cols)
  ) u_engine (
      .clk_i,
      .rst_i,
      .job_valid_i(job_valid),
      .job_ready_o(job_ready),
      .job_i(job),
      .done_o(job_done),
      .data_valid_i,
      .data_ready_o,
      .data_i,
      .save_valid_o,
      .save_ready_i,
      .save_o,
      .act_re_o,
      .act_re_ready_i,
      .act_raddr_o,
      .act_rdata_i,
      .act_we_o,
      .act_ready_i,
      .act_waddr_o,
      .act_wdata_o,
      .cell_re_o,
      .cell_re_ready_i,
      .cell_raddr_o,
      .cell_rdata_i,
      .cell_we_o,
      .cell_ready_i,
      .cell_waddr_o,
      .cell_wdata_o
  );
endmodule
