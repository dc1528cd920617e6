// SPDX-License-Identifier: Apache-2.0
// The accelerator: host block and engine of one configuration. Registers by AXI4-Lite, device memory by an AXI4 master (bursts INCR, words of 32 bits).
module gharial_core
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
#(
    parameter string Multiplier = "GENERIC",
    parameter logic [63:0] MemBytes = 64'(WindowBytes)  // of the device memory
) (
    input logic clk_i,
    input logic rst_i,

    input  logic        s_axil_csr_awvalid_i,
    output logic        s_axil_csr_awready_o,
    input  logic [ 7:0] s_axil_csr_awaddr_i,
    input  logic [ 2:0] s_axil_csr_awprot_i,
    input  logic        s_axil_csr_wvalid_i,
    output logic        s_axil_csr_wready_o,
    input  logic [31:0] s_axil_csr_wdata_i,
    input  logic [ 3:0] s_axil_csr_wstrb_i,
    output logic        s_axil_csr_bvalid_o,
    input  logic        s_axil_csr_bready_i,
    output logic [ 1:0] s_axil_csr_bresp_o,
    input  logic        s_axil_csr_arvalid_i,
    output logic        s_axil_csr_arready_o,
    input  logic [ 7:0] s_axil_csr_araddr_i,
    input  logic [ 2:0] s_axil_csr_arprot_i,
    output logic        s_axil_csr_rvalid_o,
    input  logic        s_axil_csr_rready_i,
    output logic [31:0] s_axil_csr_rdata_o,
    output logic [ 1:0] s_axil_csr_rresp_o,

    output logic        irq_o,
    output logic [31:0] completions_o,  // completion index
    output logic        halted_o,

    output logic        m_axi_arvalid_o,
    input  logic        m_axi_arready_i,
    output logic [63:0] m_axi_araddr_o,
    output logic [ 7:0] m_axi_arlen_o,
    input  logic        m_axi_rvalid_i,
    output logic        m_axi_rready_o,
    input  logic [31:0] m_axi_rdata_i,
    input  logic [ 1:0] m_axi_rresp_i,
    input  logic        m_axi_rlast_i,
    output logic        m_axi_awvalid_o,
    input  logic        m_axi_awready_i,
    output logic [63:0] m_axi_awaddr_o,
    output logic        m_axi_wvalid_o,
    input  logic        m_axi_wready_i,
    output logic [31:0] m_axi_wdata_o,
    input  logic        m_axi_bvalid_i,
    output logic        m_axi_bready_o,
    input  logic [ 1:0] m_axi_bresp_i
);
  logic
      engine_reset,
      load_valid,
      entry_valid,
      entry_ready,
      features_free,
      result_valid,
      result_ready,
      done_valid,
      done_ready;
  logic zero_valid[2], zero_done[2], active, blocked, waits, idle;
  header_t header;
  space_e load_space;
  logic [26:0] load_addr;
  logic [31:0] load_data, instruction, state_data;
  logic state_reset, send_valid, send_ready, send_done, move_valid, move_ready, move_done;
  logic state_data_valid, state_data_ready, save_valid, save_ready;
  slot_job_t send, move;
  write_t save, result;
  entry_t entry;
  entry_done_t done;
  logic [ActAddrW-1:0] zero_act[2], act_raddr, act_waddr;
  logic [CellAddrW-1:0] zero_cell[2], cell_raddr, cell_waddr;
  logic act_re, act_re_ready, act_we, act_ready, cell_re, cell_re_ready, cell_we, cell_ready;
  logic [8*Cols-1:0] act_rdata, act_wdata;
  logic [4*Rows-1:0] cell_rdata, cell_wdata;

  host_block #(
      .MemBytes(MemBytes)
  ) u_host (
      .clk_i,
      .rst_i,
      .s_axil_awvalid_i(s_axil_csr_awvalid_i),
      .s_axil_awready_o(s_axil_csr_awready_o),
      .s_axil_awaddr_i(s_axil_csr_awaddr_i),
      .s_axil_awprot_i(s_axil_csr_awprot_i),
      .s_axil_wvalid_i(s_axil_csr_wvalid_i),
      .s_axil_wready_o(s_axil_csr_wready_o),
      .s_axil_wdata_i(s_axil_csr_wdata_i),
      .s_axil_wstrb_i(s_axil_csr_wstrb_i),
      .s_axil_bvalid_o(s_axil_csr_bvalid_o),
      .s_axil_bready_i(s_axil_csr_bready_i),
      .s_axil_bresp_o(s_axil_csr_bresp_o),
      .s_axil_arvalid_i(s_axil_csr_arvalid_i),
      .s_axil_arready_o(s_axil_csr_arready_o),
      .s_axil_araddr_i(s_axil_csr_araddr_i),
      .s_axil_arprot_i(s_axil_csr_arprot_i),
      .s_axil_rvalid_o(s_axil_csr_rvalid_o),
      .s_axil_rready_i(s_axil_csr_rready_i),
      .s_axil_rdata_o(s_axil_csr_rdata_o),
      .s_axil_rresp_o(s_axil_csr_rresp_o),
      .irq_o,
      .completions_o,
      .halted_o,
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
      .m_axi_wvalid_o,
      .m_axi_wready_i,
      .m_axi_wdata_o,
      .m_axi_bvalid_i,
      .m_axi_bready_o,
      .m_axi_bresp_i,
      .engine_reset_o(engine_reset),
      .header_o(header),
      .load_valid_o(load_valid),
      .load_space_o(load_space),
      .load_addr_o(load_addr),
      .load_data_o(load_data),
      .entry_valid_o(entry_valid),
      .entry_ready_i(entry_ready),
      .entry_o(entry),
      .features_free_i(features_free),
      .result_valid_i(result_valid),
      .result_ready_o(result_ready),
      .result_i(result),
      .done_valid_i(done_valid),
      .done_ready_o(done_ready),
      .done_i(done),
      .matrix_active_i(active),
      .matrix_blocked_i(blocked),
      .thread_waits_i(waits),
      .threads_idle_i(idle),
      .instruction_i(instruction),
      .state_reset_o(state_reset),
      .send_valid_o(send_valid),
      .send_ready_i(send_ready),
      .send_o(send),
      .send_done_i(send_done),
      .move_valid_o(move_valid),
      .move_ready_i(move_ready),
      .move_o(move),
      .move_done_i(move_done),
      .data_valid_o(state_data_valid),
      .data_ready_i(state_data_ready),
      .data_o(state_data),
      .save_valid_i(save_valid),
      .save_ready_o(save_ready),
      .save_i(save)
  );

  state_port u_state (
      .clk_i,
      .rst_i(state_reset),
      .header_i(header),
      .zero_valid_i(zero_valid),
      .zero_act_i(zero_act),
      .zero_cell_i(zero_cell),
      .zero_done_o(zero_done),
      .send_valid_i(send_valid),
      .send_ready_o(send_ready),
      .send_i(send),
      .send_done_o(send_done),
      .move_valid_i(move_valid),
      .move_ready_o(move_ready),
      .move_i(move),
      .move_done_o(move_done),
      .data_valid_i(state_data_valid),
      .data_ready_o(state_data_ready),
      .data_i(state_data),
      .save_valid_o(save_valid),
      .save_ready_i(save_ready),
      .save_o(save),
      .act_re_o(act_re),
      .act_re_ready_i(act_re_ready),
      .act_raddr_o(act_raddr),
      .act_rdata_i(act_rdata),
      .act_we_o(act_we),
      .act_ready_i(act_ready),
      .act_waddr_o(act_waddr),
      .act_wdata_o(act_wdata),
      .cell_re_o(cell_re),
      .cell_re_ready_i(cell_re_ready),
      .cell_raddr_o(cell_raddr),
      .cell_rdata_i(cell_rdata),
      .cell_we_o(cell_we),
      .cell_ready_i(cell_ready),
      .cell_waddr_o(cell_waddr),
      .cell_wdata_o(cell_wdata)
  );

  engine #(
      .Multiplier(Multiplier)
  ) u_engine (
      .clk_i,
      .rst_i(engine_reset),
      .header_i(header),
      .load_valid_i(load_valid),
      .load_space_i(load_space),
      .load_addr_i(load_addr),
      .load_data_i(load_data),
      .entry_valid_i(entry_valid),
      .entry_ready_o(entry_ready),
      .entry_i(entry),
      .features_free_o(features_free),
      .result_valid_o(result_valid),
      .result_ready_i(result_ready),
      .result_addr_o(result.addr),
      .result_data_o(result.data),
      .done_valid_o(done_valid),
      .done_ready_i(done_ready),
      .done_o(done),
      .zero_valid_o(zero_valid),
      .zero_act_o(zero_act),
      .zero_cell_o(zero_cell),
      .zero_done_i(zero_done),
      .active_o(active),
      .blocked_o(blocked),
      .waits_o(waits),
      .idle_o(idle),
      .instruction_o(instruction),
      .act_re_i(act_re),
      .act_re_ready_o(act_re_ready),
      .act_raddr_i(act_raddr),
      .act_rdata_o(act_rdata),
      .act_we_i(act_we),
      .act_ready_o(act_ready),
      .act_waddr_i(act_waddr),
      .act_wdata_i(act_wdata),
      .cell_re_i(cell_re),
      .cell_re_ready_o(cell_re_ready),
      .cell_raddr_i(cell_raddr),
      .cell_rdata_o(cell_rdata),
      .cell_we_i(cell_we),
      .cell_ready_o(cell_ready),
      .cell_waddr_i(cell_waddr),
      .cell_wdata_i(cell_wdata)
  );
endmodule
