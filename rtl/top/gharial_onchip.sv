// SPDX-License-Identifier: Apache-2.0
// The accelerator with its device memory on chip: registers and memory each behind an AXI4-Lite slave.
module gharial_onchip
  import gharial_config_pkg::*;
#(
    parameter string Multiplier = "GENERIC"
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

    input  logic        s_axil_mem_awvalid,
    output logic        s_axil_mem_awready,
    input  logic [31:0] s_axil_mem_awaddr,
    input  logic [ 2:0] s_axil_mem_awprot,
    input  logic        s_axil_mem_wvalid,
    output logic        s_axil_mem_wready,
    input  logic [31:0] s_axil_mem_wdata,
    input  logic [ 3:0] s_axil_mem_wstrb,
    output logic        s_axil_mem_bvalid,
    input  logic        s_axil_mem_bready,
    output logic [ 1:0] s_axil_mem_bresp,
    input  logic        s_axil_mem_arvalid,
    output logic        s_axil_mem_arready,
    input  logic [31:0] s_axil_mem_araddr,
    input  logic [ 2:0] s_axil_mem_arprot,
    output logic        s_axil_mem_rvalid,
    input  logic        s_axil_mem_rready,
    output logic [31:0] s_axil_mem_rdata,
    output logic [ 1:0] s_axil_mem_rresp,

    output logic        irq_o,
    output logic [31:0] completions_o,  // completion index
    output logic        halted_o
);
  logic axi_arvalid;
  logic axi_arready;
  logic [63:0] axi_araddr;
  logic [7:0] axi_arlen;
  logic axi_rvalid;
  logic axi_rready;
  logic [31:0] axi_rdata;
  logic [1:0] axi_rresp;
  logic axi_rlast;
  logic axi_awvalid;
  logic axi_awready;
  logic [63:0] axi_awaddr;
  logic axi_wvalid;
  logic axi_wready;
  logic [31:0] axi_wdata;
  logic axi_bvalid;
  logic axi_bready;
  logic [1:0] axi_bresp;

  gharial_core #(
      .Multiplier(Multiplier)
  ) u_core (
      .clk_i,
      .rst_i,
      .s_axil_csr_awvalid_i(s_axil_csr_awvalid),
      .s_axil_csr_awready_o(s_axil_csr_awready),
      .s_axil_csr_awaddr_i(s_axil_csr_awaddr),
      .s_axil_csr_awprot_i(s_axil_csr_awprot),
      .s_axil_csr_wvalid_i(s_axil_csr_wvalid),
      .s_axil_csr_wready_o(s_axil_csr_wready),
      .s_axil_csr_wdata_i(s_axil_csr_wdata),
      .s_axil_csr_wstrb_i(s_axil_csr_wstrb),
      .s_axil_csr_bvalid_o(s_axil_csr_bvalid),
      .s_axil_csr_bready_i(s_axil_csr_bready),
      .s_axil_csr_bresp_o(s_axil_csr_bresp),
      .s_axil_csr_arvalid_i(s_axil_csr_arvalid),
      .s_axil_csr_arready_o(s_axil_csr_arready),
      .s_axil_csr_araddr_i(s_axil_csr_araddr),
      .s_axil_csr_arprot_i(s_axil_csr_arprot),
      .s_axil_csr_rvalid_o(s_axil_csr_rvalid),
      .s_axil_csr_rready_i(s_axil_csr_rready),
      .s_axil_csr_rdata_o(s_axil_csr_rdata),
      .s_axil_csr_rresp_o(s_axil_csr_rresp),
      .irq_o,
      .completions_o,
      .halted_o,
      .m_axi_arvalid_o(axi_arvalid),
      .m_axi_arready_i(axi_arready),
      .m_axi_araddr_o(axi_araddr),
      .m_axi_arlen_o(axi_arlen),
      .m_axi_rvalid_i(axi_rvalid),
      .m_axi_rready_o(axi_rready),
      .m_axi_rdata_i(axi_rdata),
      .m_axi_rresp_i(axi_rresp),
      .m_axi_rlast_i(axi_rlast),
      .m_axi_awvalid_o(axi_awvalid),
      .m_axi_awready_i(axi_awready),
      .m_axi_awaddr_o(axi_awaddr),
      .m_axi_wvalid_o(axi_wvalid),
      .m_axi_wready_i(axi_wready),
      .m_axi_wdata_o(axi_wdata),
      .m_axi_bvalid_i(axi_bvalid),
      .m_axi_bready_o(axi_bready),
      .m_axi_bresp_i(axi_bresp)
  );

  window_memory #(
      .Bytes(32'(WindowBytes))
  ) u_window (
      .clk_i,
      .rst_i,
      .s_axil_awvalid_i(s_axil_mem_awvalid),
      .s_axil_awready_o(s_axil_mem_awready),
      .s_axil_awaddr_i(s_axil_mem_awaddr),
      .s_axil_wvalid_i(s_axil_mem_wvalid),
      .s_axil_wready_o(s_axil_mem_wready),
      .s_axil_wdata_i(s_axil_mem_wdata),
      .s_axil_wstrb_i(s_axil_mem_wstrb),
      .s_axil_bvalid_o(s_axil_mem_bvalid),
      .s_axil_bready_i(s_axil_mem_bready),
      .s_axil_bresp_o(s_axil_mem_bresp),
      .s_axil_arvalid_i(s_axil_mem_arvalid),
      .s_axil_arready_o(s_axil_mem_arready),
      .s_axil_araddr_i(s_axil_mem_araddr),
      .s_axil_rvalid_o(s_axil_mem_rvalid),
      .s_axil_rready_i(s_axil_mem_rready),
      .s_axil_rdata_o(s_axil_mem_rdata),
      .s_axil_rresp_o(s_axil_mem_rresp),
      .s_axi_arvalid_i(axi_arvalid),
      .s_axi_arready_o(axi_arready),
      .s_axi_araddr_i(axi_araddr),
      .s_axi_arlen_i(axi_arlen),
      .s_axi_rvalid_o(axi_rvalid),
      .s_axi_rready_i(axi_rready),
      .s_axi_rdata_o(axi_rdata),
      .s_axi_rresp_o(axi_rresp),
      .s_axi_rlast_o(axi_rlast),
      .s_axi_awvalid_i(axi_awvalid),
      .s_axi_awready_o(axi_awready),
      .s_axi_awaddr_i(axi_awaddr),
      .s_axi_wvalid_i(axi_wvalid),
      .s_axi_wready_o(axi_wready),
      .s_axi_wdata_i(axi_wdata),
      .s_axi_bvalid_o(axi_bvalid),
      .s_axi_bready_i(axi_bready),
      .s_axi_bresp_o(axi_bresp)
  );

  logic unused;
  assign unused = &{1'b0, s_axil_mem_awprot, s_axil_mem_arprot};  // no access is privileged
endmodule
