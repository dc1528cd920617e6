// SPDX-License-Identifier: Apache-2.0
// The state mover: an AXI4 master that fetches, stores and zeros runs of activation and cell units of the seats, for the batch aux unit and the seater, in
// this order. Fetches and zeros end in their order, stores in theirs; a store reads its seat when the fetches taken before it have ended.
module state_mover
  import seat_pkg::*;
#(
    parameter int unsigned Rows = gharial_config_pkg::Rows,
    parameter int unsigned Cols = gharial_config_pkg::Cols,
    parameter int unsigned PortBytes = gharial_config_pkg::PortBytes
) (
    input logic clk_i,
    input logic rst_i,
    input logic hold_i, // soft reset: no new bursts; what comes is dropped; what is owed is written with no byte enabled

    input  logic      aux_valid_i,
    output logic      aux_ready_o,
    input  move_job_t aux_job_i,
    input  logic      seater_valid_i,
    output logic      seater_ready_o,
    input  move_job_t seater_job_i,

    output logic        fetch_done_o,        // one clock: a fetch or zero can be read
    output logic        fetch_client_o,      // aux
    output logic [ 7:0] fetch_tag_o,
    output logic        fetch_failed_o,
    output logic [63:0] fetch_error_addr_o,
    output logic        store_done_o,        // one clock: a store has been answered
    output logic        store_client_o,
    output logic [ 7:0] store_tag_o,
    output logic        store_failed_o,
    output logic [63:0] store_error_addr_o,

    output logic                 act_we_o,
    input  logic                 act_ready_i,
    output logic [ SeatActW-1:0] act_waddr_o,
    output logic [   8*Cols-1:0] act_wdata_o,
    output logic                 act_re_o,
    input  logic                 act_re_ready_i,
    output logic [ SeatActW-1:0] act_raddr_o,
    input  logic [   8*Cols-1:0] act_rdata_i,
    output logic                 cell_we_o,
    input  logic                 cell_ready_i,
    output logic [SeatCellW-1:0] cell_waddr_o,
    output logic [   4*Rows-1:0] cell_wdata_o,
    output logic                 cell_re_o,
    input  logic                 cell_re_ready_i,
    output logic [SeatCellW-1:0] cell_raddr_o,
    input  logic [   4*Rows-1:0] cell_rdata_i,

    output logic                   idle_o,           // nothing outstanding
    output logic                   m_axi_arvalid_o,
    input  logic                   m_axi_arready_i,
    output logic [           63:0] m_axi_araddr_o,
    output logic [            7:0] m_axi_arlen_o,
    input  logic                   m_axi_rvalid_i,
    output logic                   m_axi_rready_o,
    input  logic [8*PortBytes-1:0] m_axi_rdata_i,
    input  logic [            1:0] m_axi_rresp_i,
    input  logic                   m_axi_rlast_i,
    output logic                   m_axi_awvalid_o,
    input  logic                   m_axi_awready_i,
    output logic [           63:0] m_axi_awaddr_o,
    output logic [            7:0] m_axi_awlen_o,
    output logic                   m_axi_wvalid_o,
    input  logic                   m_axi_wready_i,
    output logic [8*PortBytes-1:0] m_axi_wdata_o,
    output logic [  PortBytes-1:0] m_axi_wstrb_o,
    output logic                   m_axi_wlast_o,
    input  logic                   m_axi_bvalid_i,
    output logic                   m_axi_bready_o,
    input  logic [            1:0] m_axi_bresp_i
);
  move_job_t job;
  logic job_valid, job_ready, is_store, fetch_ready, store_ready, fetch_taken, fetch_idle, store_idle;
  logic [4:0] fetches_q;  // on their way

  assign job = aux_valid_i ? aux_job_i : seater_job_i;
  assign job_valid = aux_valid_i || seater_valid_i;
  assign is_store = job.op == MoveStore;
  assign job_ready = is_store ? store_ready : fetch_ready;
  assign aux_ready_o = job_ready;
  assign seater_ready_o = job_ready && !aux_valid_i;
  assign fetch_taken = job_valid && !is_store && fetch_ready;
  assign idle_o = fetch_idle && store_idle;

  always_ff @(posedge clk_i) begin
    fetches_q <= fetches_q + 5'(fetch_taken) - 5'(fetch_done_o);
    if (rst_i) fetches_q <= '0;
  end

  move_fetch #(
      .Rows(Rows),
      .Cols(Cols),
      .PortBytes(PortBytes)
  ) u_fetch (
      .clk_i,
      .rst_i,
      .hold_i,
      .job_valid_i(job_valid && !is_store),
      .job_ready_o(fetch_ready),
      .client_i(aux_valid_i),
      .job_i(job),
      .done_o(fetch_done_o),
      .client_o(fetch_client_o),
      .tag_o(fetch_tag_o),
      .failed_o(fetch_failed_o),
      .error_addr_o(fetch_error_addr_o),
      .act_we_o,
      .act_ready_i,
      .act_addr_o(act_waddr_o),
      .act_data_o(act_wdata_o),
      .cell_we_o,
      .cell_ready_i,
      .cell_addr_o(cell_waddr_o),
      .cell_data_o(cell_wdata_o),
      .idle_o(fetch_idle),
      .m_axi_arvalid_o,
      .m_axi_arready_i,
      .m_axi_araddr_o,
      .m_axi_arlen_o,
      .m_axi_rvalid_i,
      .m_axi_rready_o,
      .m_axi_rdata_i,
      .m_axi_rresp_i,
      .m_axi_rlast_i
  );

  move_store #(
      .Rows(Rows),
      .Cols(Cols),
      .PortBytes(PortBytes)
  ) u_store (
      .clk_i,
      .rst_i,
      .hold_i,
      .job_valid_i(job_valid && is_store),
      .job_ready_o(store_ready),
      .client_i(aux_valid_i),
      .job_i(job),
      .fetches_i(fetches_q),
      .fetch_done_i(fetch_done_o),
      .done_o(store_done_o),
      .client_o(store_client_o),
      .tag_o(store_tag_o),
      .failed_o(store_failed_o),
      .error_addr_o(store_error_addr_o),
      .act_re_o,
      .act_ready_i(act_re_ready_i),
      .act_addr_o(act_raddr_o),
      .act_data_i(act_rdata_i),
      .cell_re_o,
      .cell_ready_i(cell_re_ready_i),
      .cell_addr_o(cell_raddr_o),
      .cell_data_i(cell_rdata_i),
      .idle_o(store_idle),
      .m_axi_awvalid_o,
      .m_axi_awready_i,
      .m_axi_awaddr_o,
      .m_axi_awlen_o,
      .m_axi_wvalid_o,
      .m_axi_wready_i,
      .m_axi_wdata_o,
      .m_axi_wstrb_o,
      .m_axi_wlast_o,
      .m_axi_bvalid_i,
      .m_axi_bready_o,
      .m_axi_bresp_i
  );
endmodule
