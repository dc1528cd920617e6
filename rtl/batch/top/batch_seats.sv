// SPDX-License-Identifier: Apache-2.0
// The seats' memories, and who moves what is in them: state mover and batch aux (docs/blocks/batch_top.md).
module batch_seats
  import gharial_config_pkg::*;
  import seat_pkg::*;
(
    input logic clk_i,
    input logic rst_i,
    input logic hold_i,

    input logic [63:0] embed_base_i,

    input  logic                 array_en_i,
    input  logic [ SeatActW-1:0] array_addr_i,
    output logic [   8*Cols-1:0] array_data_o,
    input  logic                 finish_act_we_i,
    input  logic [ SeatActW-1:0] finish_act_addr_i,
    input  logic [   8*Cols-1:0] finish_act_data_i,
    input  logic [     Cols-1:0] finish_act_mask_i,
    input  logic                 finish_cell_re_i,
    input  logic [SeatCellW-1:0] finish_cell_raddr_i,
    output logic [   4*Rows-1:0] cell_rdata_o,
    input  logic                 finish_cell_we_i,
    input  logic [SeatCellW-1:0] finish_cell_waddr_i,
    input  logic [   4*Rows-1:0] finish_cell_wdata_i,
    input  logic [   Rows/4-1:0] finish_cell_wmask_i,
    input  logic                 loader_we_i,
    output logic                 loader_ready_o,
    input  logic [ SeatActW-1:0] loader_addr_i,
    input  logic [   8*Cols-1:0] loader_data_i,

    // Jobs of the sequencer.
    input  logic                            aux_valid_i,
    output logic                            aux_ready_o,
    input  seat_aux_job_t                   aux_job_i,
    output logic                            aux_done_o,
    output logic                            aux_failed_o,
    output logic          [     63:0]       aux_error_addr_o,
    input  logic          [Seats-1:0][15:0] aux_tokens_i,
    input  seats_t                          aux_zeros_i,

    // Jobs of the seater.
    input  logic             job_valid_i,
    output logic             job_ready_o,
    input  move_job_t        job_i,
    output logic             fetch_done_o,
    output logic      [ 7:0] fetch_tag_o,
    output logic             fetch_failed_o,
    output logic      [63:0] fetch_error_addr_o,
    output logic             store_done_o,
    output logic      [ 7:0] store_tag_o,
    output logic             store_failed_o,
    output logic      [63:0] store_error_addr_o,

    output logic                   idle_o,
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
  logic move_valid, move_ready, aux_cell_re, aux_cell_ready, aux_act_we, aux_act_ready;
  move_job_t move;
  logic [SeatCellW-1:0] aux_cell_raddr;
  logic [SeatActW-1:0] aux_act_waddr;
  logic [8*Cols-1:0] aux_act_wdata;
  logic [Cols-1:0] aux_act_wmask;
  logic fetch_done, fetch_client, store_done, store_client;
  assign fetch_done_o = fetch_done && !fetch_client;
  assign store_done_o = store_done && !store_client;

  batch_aux u_aux (
      .clk_i,
      .rst_i,
      .job_valid_i(aux_valid_i),
      .job_ready_o(aux_ready_o),
      .job_i(aux_job_i),
      .done_o(aux_done_o),
      .failed_o(aux_failed_o),
      .error_addr_o(aux_error_addr_o),
      .tokens_i(aux_tokens_i),
      .zeros_i(aux_zeros_i),
      .embed_base_i,
      .move_valid_o(move_valid),
      .move_ready_i(move_ready),
      .move_o(move),
      .move_done_i(fetch_done && fetch_client),
      .move_failed_i(fetch_failed_o),
      .move_error_addr_i(fetch_error_addr_o),
      .cell_re_o(aux_cell_re),
      .cell_ready_i(aux_cell_ready),
      .cell_raddr_o(aux_cell_raddr),
      .cell_rdata_i(cell_rdata_o),
      .act_we_o(aux_act_we),
      .act_ready_i(aux_act_ready),
      .act_waddr_o(aux_act_waddr),
      .act_wdata_o(aux_act_wdata),
      .act_wmask_o(aux_act_wmask)
  );

  logic act_we, act_ready, act_re, act_re_ready, cell_we, cell_ready, cell_re, cell_re_ready;
  logic [SeatActW-1:0] act_waddr, act_raddr;
  logic [SeatCellW-1:0] cell_waddr, cell_raddr;
  logic [8*Cols-1:0] act_wdata, act_rdata;
  logic [4*Rows-1:0] cell_wdata;
  state_mover u_mover (
      .clk_i,
      .rst_i,
      .hold_i,
      .aux_valid_i(move_valid),
      .aux_ready_o(move_ready),
      .aux_job_i(move),
      .seater_valid_i(job_valid_i),
      .seater_ready_o(job_ready_o),
      .seater_job_i(job_i),
      .fetch_done_o(fetch_done),
      .fetch_client_o(fetch_client),
      .fetch_tag_o,
      .fetch_failed_o,
      .fetch_error_addr_o,
      .store_done_o(store_done),
      .store_client_o(store_client),
      .store_tag_o,
      .store_failed_o,
      .store_error_addr_o,
      .act_we_o(act_we),
      .act_ready_i(act_ready),
      .act_waddr_o(act_waddr),
      .act_wdata_o(act_wdata),
      .act_re_o(act_re),
      .act_re_ready_i(act_re_ready),
      .act_raddr_o(act_raddr),
      .act_rdata_i(act_rdata),
      .cell_we_o(cell_we),
      .cell_ready_i(cell_ready),
      .cell_waddr_o(cell_waddr),
      .cell_wdata_o(cell_wdata),
      .cell_re_o(cell_re),
      .cell_re_ready_i(cell_re_ready),
      .cell_raddr_o(cell_raddr),
      .cell_rdata_i(cell_rdata_o),
      .idle_o,
      .m_axi_arvalid_o,
      .m_axi_arready_i,
      .m_axi_araddr_o,
      .m_axi_arlen_o,
      .m_axi_rvalid_i,
      .m_axi_rready_o,
      .m_axi_rdata_i,
      .m_axi_rresp_i,
      .m_axi_rlast_i,
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

  seat_activations u_activations (
      .clk_i,
      .array_en_i,
      .array_addr_i,
      .array_data_o,
      .mover_re_i(act_re),
      .mover_re_ready_o(act_re_ready),
      .mover_raddr_i(act_raddr),
      .mover_rdata_o(act_rdata),
      .finish_we_i(finish_act_we_i),
      .finish_addr_i(finish_act_addr_i),
      .finish_data_i(finish_act_data_i),
      .finish_mask_i(finish_act_mask_i),
      .aux_we_i(aux_act_we),
      .aux_ready_o(aux_act_ready),
      .aux_addr_i(aux_act_waddr),
      .aux_data_i(aux_act_wdata),
      .aux_mask_i(aux_act_wmask),
      .mover_we_i(act_we),
      .mover_ready_o(act_ready),
      .mover_addr_i(act_waddr),
      .mover_data_i(act_wdata),
      .loader_we_i,
      .loader_ready_o,
      .loader_addr_i,
      .loader_data_i
  );

  seat_cells u_cells (
      .clk_i,
      .finish_re_i(finish_cell_re_i),
      .finish_raddr_i(finish_cell_raddr_i),
      .aux_re_i(aux_cell_re),
      .aux_ready_o(aux_cell_ready),
      .aux_raddr_i(aux_cell_raddr),
      .mover_re_i(cell_re),
      .mover_re_ready_o(cell_re_ready),
      .mover_raddr_i(cell_raddr),
      .rdata_o(cell_rdata_o),
      .finish_we_i(finish_cell_we_i),
      .finish_waddr_i(finish_cell_waddr_i),
      .finish_wdata_i(finish_cell_wdata_i),
      .finish_wmask_i(finish_cell_wmask_i),
      .mover_we_i(cell_we),
      .mover_ready_o(cell_ready),
      .mover_waddr_i(cell_waddr),
      .mover_wdata_i(cell_wdata)
  );
endmodule
