// SPDX-License-Identifier: Apache-2.0
// The accelerator as the environment of sim/uvm sees it: its own ports, and what the monitors watch, gathered into few signals. A monitor sleeps until one of
// them changes, so that clocks in which nothing of its interest happens cost no Python.
module uvm_top
  import gharial_pkg::*;
  import sequencer_pkg::*;
#(
    parameter string Multiplier = "GENERIC"
) (
    input logic clk_i,
    input logic rst_i,

    input  logic        csr_awvalid_i,
    output logic        csr_awready_o,
    input  logic [ 7:0] csr_awaddr_i,
    input  logic [ 2:0] csr_awprot_i,
    input  logic        csr_wvalid_i,
    output logic        csr_wready_o,
    input  logic [31:0] csr_wdata_i,
    input  logic [ 3:0] csr_wstrb_i,
    output logic        csr_bvalid_o,
    input  logic        csr_bready_i,
    output logic [ 1:0] csr_bresp_o,
    input  logic        csr_arvalid_i,
    output logic        csr_arready_o,
    input  logic [ 7:0] csr_araddr_i,
    input  logic [ 2:0] csr_arprot_i,
    output logic        csr_rvalid_o,
    input  logic        csr_rready_i,
    output logic [31:0] csr_rdata_o,
    output logic [ 1:0] csr_rresp_o,

    output logic        axi_arvalid_o,
    input  logic        axi_arready_i,
    output logic [63:0] axi_araddr_o,
    output logic [ 7:0] axi_arlen_o,
    input  logic        axi_rvalid_i,
    output logic        axi_rready_o,
    input  logic [31:0] axi_rdata_i,
    input  logic [ 1:0] axi_rresp_i,
    input  logic        axi_rlast_i,
    output logic        axi_awvalid_o,
    input  logic        axi_awready_i,
    output logic [63:0] axi_awaddr_o,
    output logic        axi_wvalid_o,
    input  logic        axi_wready_i,
    output logic [31:0] axi_wdata_o,
    input  logic        axi_bvalid_i,
    output logic        axi_bready_o,
    input  logic [ 1:0] axi_bresp_i,

    output logic        irq_o,
    output logic [31:0] completions_o,
    output logic        halted_o,

    // Handshakes of the five channels, valid below ready: AR, R, AW, W, B.
    output logic [9:0] csr_channels_o,
    output logic [9:0] axi_channels_o,
    // Jobs handed to the units: how many, and the latest.
    output logic [31:0] jobs_o,
    output mat_job_t matrix_job_o,
    output vec_job_t vector_job_o,
    output logic [31:0] aux_jobs_o,
    output aux_job_t aux_job_o
);
  gharial_core #(
      .Multiplier(Multiplier)
  ) u_core (
      .clk_i,
      .rst_i,
      .s_axil_csr_awvalid_i(csr_awvalid_i),
      .s_axil_csr_awready_o(csr_awready_o),
      .s_axil_csr_awaddr_i(csr_awaddr_i),
      .s_axil_csr_awprot_i(csr_awprot_i),
      .s_axil_csr_wvalid_i(csr_wvalid_i),
      .s_axil_csr_wready_o(csr_wready_o),
      .s_axil_csr_wdata_i(csr_wdata_i),
      .s_axil_csr_wstrb_i(csr_wstrb_i),
      .s_axil_csr_bvalid_o(csr_bvalid_o),
      .s_axil_csr_bready_i(csr_bready_i),
      .s_axil_csr_bresp_o(csr_bresp_o),
      .s_axil_csr_arvalid_i(csr_arvalid_i),
      .s_axil_csr_arready_o(csr_arready_o),
      .s_axil_csr_araddr_i(csr_araddr_i),
      .s_axil_csr_arprot_i(csr_arprot_i),
      .s_axil_csr_rvalid_o(csr_rvalid_o),
      .s_axil_csr_rready_i(csr_rready_i),
      .s_axil_csr_rdata_o(csr_rdata_o),
      .s_axil_csr_rresp_o(csr_rresp_o),
      .irq_o,
      .completions_o,
      .halted_o,
      .m_axi_arvalid_o(axi_arvalid_o),
      .m_axi_arready_i(axi_arready_i),
      .m_axi_araddr_o(axi_araddr_o),
      .m_axi_arlen_o(axi_arlen_o),
      .m_axi_rvalid_i(axi_rvalid_i),
      .m_axi_rready_o(axi_rready_o),
      .m_axi_rdata_i(axi_rdata_i),
      .m_axi_rresp_i(axi_rresp_i),
      .m_axi_rlast_i(axi_rlast_i),
      .m_axi_awvalid_o(axi_awvalid_o),
      .m_axi_awready_i(axi_awready_i),
      .m_axi_awaddr_o(axi_awaddr_o),
      .m_axi_wvalid_o(axi_wvalid_o),
      .m_axi_wready_i(axi_wready_i),
      .m_axi_wdata_o(axi_wdata_o),
      .m_axi_bvalid_i(axi_bvalid_i),
      .m_axi_bready_o(axi_bready_o),
      .m_axi_bresp_i(axi_bresp_i)
  );

  assign csr_channels_o = {
    csr_bready_i,
    csr_bvalid_o,
    csr_wready_o,
    csr_wvalid_i,
    csr_awready_o,
    csr_awvalid_i,
    csr_rready_i,
    csr_rvalid_o,
    csr_arready_o,
    csr_arvalid_i
  };
  assign axi_channels_o = {
    axi_bready_o,
    axi_bvalid_i,
    axi_wready_i,
    axi_wvalid_o,
    axi_awready_i,
    axi_awvalid_o,
    axi_rready_o,
    axi_rvalid_i,
    axi_arready_i,
    axi_arvalid_o
  };

  always_ff @(posedge clk_i) begin
    if (u_core.u_engine.mat_valid && u_core.u_engine.mat_ready) begin
      jobs_o <= jobs_o + 32'd1;
      matrix_job_o <= u_core.u_engine.mat_job;
      vector_job_o <= u_core.u_engine.vec_job;
    end
    if (u_core.u_engine.aux_valid && u_core.u_engine.aux_ready) begin
      aux_jobs_o <= aux_jobs_o + 32'd1;
      aux_job_o  <= u_core.u_engine.aux_job;
    end
    if (rst_i) begin
      jobs_o <= '0;
      aux_jobs_o <= '0;
    end
  end
endmodule
