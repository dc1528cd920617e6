// SPDX-License-Identifier: Apache-2.0
// The accelerator of configurations with weights in memory: command block, seater and engine. Registers by AXI4-Lite; device memory by AXI4 masters: one of
// 32-bit words for rings, entries, features and results, one for the state of slots and the embedding, and `Ports` that read weights (docs/blocks/batch_top.md).
module gharial_memory
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
  import seat_pkg::*;
#(
    parameter string Multiplier = "GENERIC",
    parameter logic [63:0] MemBytes = 64'(WindowBytes)  // of the device memory
) (
    input logic clk_i,
    input logic rst_i,

    input  logic        s_axil_csr_awvalid,
    output logic        s_axil_csr_awready,
    input  logic [ 7:0] s_axil_csr_awaddr,
    input  logic [ 2:0] s_axil_csr_awprot,
    input  logic        s_axil_csr_wvalid,
    output logic        s_axil_csr_wready,
    input  logic [31:0] s_axil_csr_wdata,
    input  logic [ 3:0] s_axil_csr_wstrb,
    output logic        s_axil_csr_bvalid,
    input  logic        s_axil_csr_bready,
    output logic [ 1:0] s_axil_csr_bresp,
    input  logic        s_axil_csr_arvalid,
    output logic        s_axil_csr_arready,
    input  logic [ 7:0] s_axil_csr_araddr,
    input  logic [ 2:0] s_axil_csr_arprot,
    output logic        s_axil_csr_rvalid,
    input  logic        s_axil_csr_rready,
    output logic [31:0] s_axil_csr_rdata,
    output logic [ 1:0] s_axil_csr_rresp,

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
    input  logic [ 1:0] m_axi_bresp_i,

    output logic [Ports-1:0]                  m_axi_weights_arvalid_o,
    input  logic [Ports-1:0]                  m_axi_weights_arready_i,
    output logic [Ports-1:0][           63:0] m_axi_weights_araddr_o,
    output logic [Ports-1:0][            7:0] m_axi_weights_arlen_o,
    input  logic [Ports-1:0]                  m_axi_weights_rvalid_i,
    output logic [Ports-1:0]                  m_axi_weights_rready_o,
    input  logic [Ports-1:0][8*PortBytes-1:0] m_axi_weights_rdata_i,
    input  logic [Ports-1:0][            1:0] m_axi_weights_rresp_i,
    input  logic [Ports-1:0]                  m_axi_weights_rlast_i,

    output logic                   m_axi_state_arvalid_o,
    input  logic                   m_axi_state_arready_i,
    output logic [           63:0] m_axi_state_araddr_o,
    output logic [            7:0] m_axi_state_arlen_o,
    input  logic                   m_axi_state_rvalid_i,
    output logic                   m_axi_state_rready_o,
    input  logic [8*PortBytes-1:0] m_axi_state_rdata_i,
    input  logic [            1:0] m_axi_state_rresp_i,
    input  logic                   m_axi_state_rlast_i,
    output logic                   m_axi_state_awvalid_o,
    input  logic                   m_axi_state_awready_i,
    output logic [           63:0] m_axi_state_awaddr_o,
    output logic [            7:0] m_axi_state_awlen_o,
    output logic                   m_axi_state_wvalid_o,
    input  logic                   m_axi_state_wready_i,
    output logic [8*PortBytes-1:0] m_axi_state_wdata_o,
    output logic [  PortBytes-1:0] m_axi_state_wstrb_o,
    output logic                   m_axi_state_wlast_o,
    input  logic                   m_axi_state_bvalid_i,
    output logic                   m_axi_state_bready_o,
    input  logic [            1:0] m_axi_state_bresp_i
);
  logic engine_reset, hold, bus_idle, seater_idle, engine_idle;
  header_t header;
  places_t places;
  logic load_valid;
  space_e load_space;
  logic [26:0] load_addr;
  logic [31:0] load_data;

  logic work_valid, work_ready, done_valid, done_ready, result_valid, result_ready;
  work_t work;
  work_done_t done;
  write_t result;
  logic [WorkW-1:0] result_work;
  logic entry_valid, entry_ready, entry_got, slot_valid, slot_ready, slot_got;
  logic [15:0] entry_index;
  entry_words_t entry;
  slot_ask_t slot;
  slot_told_t slot_told;
  logic feature_valid, feature_ready, data_valid, data_ready, data_error;
  read_t feature;
  logic [31:0] data, data_error_addr;
  logic active, starved, blocked, waits;
  logic [31:0] instruction;

  command_block #(
      .MemBytes(MemBytes)
  ) u_commands (
      .clk_i,
      .rst_i,
      .s_axil_awvalid_i(s_axil_csr_awvalid),
      .s_axil_awready_o(s_axil_csr_awready),
      .s_axil_awaddr_i(s_axil_csr_awaddr),
      .s_axil_awprot_i(s_axil_csr_awprot),
      .s_axil_wvalid_i(s_axil_csr_wvalid),
      .s_axil_wready_o(s_axil_csr_wready),
      .s_axil_wdata_i(s_axil_csr_wdata),
      .s_axil_wstrb_i(s_axil_csr_wstrb),
      .s_axil_bvalid_o(s_axil_csr_bvalid),
      .s_axil_bready_i(s_axil_csr_bready),
      .s_axil_bresp_o(s_axil_csr_bresp),
      .s_axil_arvalid_i(s_axil_csr_arvalid),
      .s_axil_arready_o(s_axil_csr_arready),
      .s_axil_araddr_i(s_axil_csr_araddr),
      .s_axil_arprot_i(s_axil_csr_arprot),
      .s_axil_rvalid_o(s_axil_csr_rvalid),
      .s_axil_rready_i(s_axil_csr_rready),
      .s_axil_rdata_o(s_axil_csr_rdata),
      .s_axil_rresp_o(s_axil_csr_rresp),
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
      .hold_o(hold),
      .engine_idle_i(bus_idle),
      .header_o(header),
      .places_o(places),
      .load_valid_o(load_valid),
      .load_space_o(load_space),
      .load_addr_o(load_addr),
      .load_data_o(load_data),
      .work_valid_o(work_valid),
      .work_ready_i(work_ready),
      .work_o(work),
      .done_valid_i(done_valid),
      .done_ready_o(done_ready),
      .done_i(done),
      .result_valid_i(result_valid),
      .result_ready_o(result_ready),
      .result_i(result),
      .result_work_i(result_work),
      .entry_valid_i(entry_valid),
      .entry_ready_o(entry_ready),
      .entry_index_i(entry_index),
      .entry_got_o(entry_got),
      .entry_o(entry),
      .slot_valid_i(slot_valid),
      .slot_ready_o(slot_ready),
      .slot_i(slot),
      .slot_got_o(slot_got),
      .slot_o(slot_told),
      .feature_valid_i(feature_valid),
      .feature_ready_o(feature_ready),
      .feature_i(feature),
      .data_valid_o(data_valid),
      .data_ready_i(data_ready),
      .data_o(data),
      .data_error_o(data_error),
      .data_error_addr_o(data_error_addr),
      .active_i(active),
      .starved_i(starved),
      .blocked_i(blocked),
      .waits_i(waits),
      .engine_busy_i(!engine_idle || !seater_idle),
      .instruction_i(instruction)
  );

  logic act_we, act_ready, job_valid, job_ready;
  logic [SeatActW-1:0] act_waddr;
  logic [8*Cols-1:0] act_wdata;
  move_job_t job;
  logic fetch_done, fetch_failed, store_done, store_failed;
  logic [7:0] fetch_tag, store_tag;
  logic [63:0] fetch_error_addr, store_error_addr;
  logic [1:0] batch_valid, batch_ready, thread_valid, thread_ready;
  batch_t batch[2];
  batch_done_t thread[2];
  logic [1:0][1:0] fetched;

  seater u_seater (
      .clk_i,
      .rst_i(engine_reset),
      .header_i(header),
      .places_i(places),
      .work_valid_i(work_valid),
      .work_ready_o(work_ready),
      .work_i(work),
      .entry_valid_o(entry_valid),
      .entry_ready_i(entry_ready),
      .entry_index_o(entry_index),
      .entry_got_i(entry_got),
      .entry_i(entry),
      .slot_valid_o(slot_valid),
      .slot_ready_i(slot_ready),
      .slot_o(slot),
      .slot_got_i(slot_got),
      .slot_i(slot_told),
      .feature_valid_o(feature_valid),
      .feature_ready_i(feature_ready),
      .feature_o(feature),
      .data_valid_i(data_valid),
      .data_ready_o(data_ready),
      .data_i(data),
      .data_error_i(data_error),
      .data_error_addr_i(data_error_addr),
      .done_valid_o(done_valid),
      .done_ready_i(done_ready),
      .done_o(done),
      .act_we_o(act_we),
      .act_ready_i(act_ready),
      .act_waddr_o(act_waddr),
      .act_wdata_o(act_wdata),
      .job_valid_o(job_valid),
      .job_ready_i(job_ready),
      .job_o(job),
      .fetch_done_i(fetch_done),
      .fetch_tag_i(fetch_tag),
      .fetch_failed_i(fetch_failed),
      .fetch_error_addr_i(fetch_error_addr[31:0]),
      .store_done_i(store_done),
      .store_tag_i(store_tag),
      .store_failed_i(store_failed),
      .store_error_addr_i(store_error_addr[31:0]),
      .batch_valid_o(batch_valid),
      .batch_ready_i(batch_ready),
      .batch_o(batch),
      .fetched_o(fetched),
      .thread_valid_i(thread_valid),
      .thread_ready_o(thread_ready),
      .thread_i(thread),
      .idle_o(seater_idle)
  );

  logic [63:0] weights_araddr[Ports];
  logic [7:0] weights_arlen[Ports];
  logic [8*PortBytes-1:0] weights_rdata[Ports];
  logic [1:0] weights_rresp[Ports];
  for (genvar p = 0; p < Ports; p++) begin : gen_port
    assign m_axi_weights_araddr_o[p] = weights_araddr[p];
    assign m_axi_weights_arlen_o[p] = weights_arlen[p];
    assign weights_rdata[p] = m_axi_weights_rdata_i[p];
    assign weights_rresp[p] = m_axi_weights_rresp_i[p];
  end

  batch_engine #(
      .Multiplier(Multiplier)
  ) u_engine (
      .clk_i,
      .rst_i(engine_reset),
      .hold_i(hold),
      .header_i(header),
      .places_i(places),
      .load_valid_i(load_valid),
      .load_space_i(load_space),
      .load_addr_i(load_addr),
      .load_data_i(load_data),
      .batch_valid_i(batch_valid),
      .batch_ready_o(batch_ready),
      .batch_i(batch),
      .fetched_i(fetched),
      .thread_valid_o(thread_valid),
      .thread_ready_i(thread_ready),
      .thread_o(thread),
      .act_we_i(act_we),
      .act_ready_o(act_ready),
      .act_waddr_i(act_waddr),
      .act_wdata_i(act_wdata),
      .job_valid_i(job_valid),
      .job_ready_o(job_ready),
      .job_i(job),
      .fetch_done_o(fetch_done),
      .fetch_tag_o(fetch_tag),
      .fetch_failed_o(fetch_failed),
      .fetch_error_addr_o(fetch_error_addr),
      .store_done_o(store_done),
      .store_tag_o(store_tag),
      .store_failed_o(store_failed),
      .store_error_addr_o(store_error_addr),
      .result_valid_o(result_valid),
      .result_ready_i(result_ready),
      .result_addr_o(result.addr),
      .result_data_o(result.data),
      .result_work_o(result_work),
      .m_axi_weights_arvalid_o,
      .m_axi_weights_arready_i,
      .m_axi_weights_araddr_o(weights_araddr),
      .m_axi_weights_arlen_o(weights_arlen),
      .m_axi_weights_rvalid_i,
      .m_axi_weights_rready_o,
      .m_axi_weights_rdata_i(weights_rdata),
      .m_axi_weights_rresp_i(weights_rresp),
      .m_axi_weights_rlast_i,
      .m_axi_state_arvalid_o,
      .m_axi_state_arready_i,
      .m_axi_state_araddr_o,
      .m_axi_state_arlen_o,
      .m_axi_state_rvalid_i,
      .m_axi_state_rready_o,
      .m_axi_state_rdata_i,
      .m_axi_state_rresp_i,
      .m_axi_state_rlast_i,
      .m_axi_state_awvalid_o,
      .m_axi_state_awready_i,
      .m_axi_state_awaddr_o,
      .m_axi_state_awlen_o,
      .m_axi_state_wvalid_o,
      .m_axi_state_wready_i,
      .m_axi_state_wdata_o,
      .m_axi_state_wstrb_o,
      .m_axi_state_wlast_o,
      .m_axi_state_bvalid_i,
      .m_axi_state_bready_o,
      .m_axi_state_bresp_i,
      .bus_idle_o(bus_idle),
      .active_o(active),
      .starved_o(starved),
      .blocked_o(blocked),
      .waits_o(waits),
      .idle_o(engine_idle),
      .instruction_o(instruction)
  );

  logic unused;
  assign unused = &{1'b0, fetch_error_addr[63:32], store_error_addr[63:32]};
endmodule
