// SPDX-License-Identifier: Apache-2.0
// Stands in for the top of the same name in tests of the simulated device: the same ports, a memory and registers that keep what is
// written, and misbehaviour on request. It stalls its channels by a pattern, and takes addresses and data in any order.
//
// Register 0xb0 (otherwise a counter): bits 7:0 turn the completion index into that number, 1 a clock; bit 8 halts; bit 9 breaks an assertion;
// bit 10 stops answering; bit 11 keeps status busy.
module gharial_onchip #(
    parameter int unsigned Words = 32'(gharial_config_pkg::WindowBytes) / 4
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
    output logic [31:0] completions_o,
    output logic        halted_o
);
  localparam int unsigned Refused = Words - 16;  // the last words answer with an error

  logic [31:0] control;
  logic [15:0] lfsr_q;
  logic stuck;

  assign stuck = control[10];
  assign irq_o = control[12];
  assign halted_o = control[8];

  always_ff @(posedge clk_i) begin
    lfsr_q <= rst_i ? 16'h1 : {lfsr_q[14:0], lfsr_q[15] ^ lfsr_q[13] ^ lfsr_q[12] ^ lfsr_q[10]};
    if (rst_i) completions_o <= '0;
    else if (completions_o != 32'(control[7:0])) completions_o <= completions_o + 32'd1;
    if (!rst_i) a_asked_for : assert (!control[9]);
  end

  probe_slave #(
      .Words(64),
      .Refused(64),
      .AddrW(8),
      .Control(44)
  ) u_registers (
      .clk_i,
      .rst_i,
      .stall_i(lfsr_q[4:0] & {5{lfsr_q[9]}} | {5{stuck}}),
      .awvalid_i(s_axil_csr_awvalid),
      .awready_o(s_axil_csr_awready),
      .awaddr_i(s_axil_csr_awaddr),
      .wvalid_i(s_axil_csr_wvalid),
      .wready_o(s_axil_csr_wready),
      .wdata_i(s_axil_csr_wdata),
      .wstrb_i(s_axil_csr_wstrb),
      .bvalid_o(s_axil_csr_bvalid),
      .bready_i(s_axil_csr_bready),
      .bresp_o(s_axil_csr_bresp),
      .arvalid_i(s_axil_csr_arvalid),
      .arready_o(s_axil_csr_arready),
      .araddr_i(s_axil_csr_araddr),
      .rvalid_o(s_axil_csr_rvalid),
      .rready_i(s_axil_csr_rready),
      .rdata_o(s_axil_csr_rdata),
      .rresp_o(s_axil_csr_rresp),
      .control_o(control)
  );

  logic [31:0] unused_control;

  probe_slave #(
      .Words(Words),
      .Refused(Refused),
      .AddrW(32),
      .Control(0)
  ) u_memory (
      .clk_i,
      .rst_i,
      .stall_i(lfsr_q[9:5] & {5{lfsr_q[12]}} | {5{stuck}}),
      .awvalid_i(s_axil_mem_awvalid),
      .awready_o(s_axil_mem_awready),
      .awaddr_i(s_axil_mem_awaddr),
      .wvalid_i(s_axil_mem_wvalid),
      .wready_o(s_axil_mem_wready),
      .wdata_i(s_axil_mem_wdata),
      .wstrb_i(s_axil_mem_wstrb),
      .bvalid_o(s_axil_mem_bvalid),
      .bready_i(s_axil_mem_bready),
      .bresp_o(s_axil_mem_bresp),
      .arvalid_i(s_axil_mem_arvalid),
      .arready_o(s_axil_mem_arready),
      .araddr_i(s_axil_mem_araddr),
      .rvalid_o(s_axil_mem_rvalid),
      .rready_i(s_axil_mem_rready),
      .rdata_o(s_axil_mem_rdata),
      .rresp_o(s_axil_mem_rresp),
      .control_o(unused_control)
  );

  logic unused;
  assign unused = &{1'b0, s_axil_csr_awprot, s_axil_csr_arprot, s_axil_mem_awprot, s_axil_mem_arprot, unused_control};
endmodule

// Words that are kept; five bits of stall hold back one channel each.
module probe_slave #(
    parameter int unsigned Words   = 64,
    parameter int unsigned Refused = 64,  // words from here on answer with an error
    parameter int unsigned AddrW   = 8,
    parameter int unsigned Control = 0    // word that is shown
) (
    input logic clk_i,
    input logic rst_i,
    input logic [4:0] stall_i,

    input  logic             awvalid_i,
    output logic             awready_o,
    input  logic [AddrW-1:0] awaddr_i,
    input  logic             wvalid_i,
    output logic             wready_o,
    input  logic [     31:0] wdata_i,
    input  logic [      3:0] wstrb_i,
    output logic             bvalid_o,
    input  logic             bready_i,
    output logic [      1:0] bresp_o,
    input  logic             arvalid_i,
    output logic             arready_o,
    input  logic [AddrW-1:0] araddr_i,
    output logic             rvalid_o,
    input  logic             rready_i,
    output logic [     31:0] rdata_o,
    output logic [      1:0] rresp_o,

    output logic [31:0] control_o
);
  logic [31:0] memory[Words];
  logic aw_q, w_q, ar_q, apply, read;
  logic [AddrW-1:0] awaddr_q, araddr_q;
  logic [31:0] wdata_q;
  logic [3:0] wstrb_q;

  assign awready_o = (!aw_q || apply) && !stall_i[0];
  assign wready_o = (!w_q || apply) && !stall_i[1];
  assign arready_o = (!ar_q || read) && !stall_i[3];
  assign apply = aw_q && w_q && !stall_i[2] && (!bvalid_o || bready_i);
  assign read = ar_q && !stall_i[4] && (!rvalid_o || rready_i);

  always_ff @(posedge clk_i) begin
    if (awvalid_i && awready_o) awaddr_q <= awaddr_i;
    if (wvalid_i && wready_o) {wstrb_q, wdata_q} <= {wstrb_i, wdata_i};
    if (arvalid_i && arready_o) araddr_q <= araddr_i;
    if (apply) begin
      for (int b = 0; b < 4; b++) if (wstrb_q[b]) memory[awaddr_q[AddrW-1:2]][8*b+:8] <= wdata_q[8*b+:8];
      bresp_o <= 32'(awaddr_q[AddrW-1:2]) < Refused ? 2'd0 : 2'd2;
    end
    if (read) begin
      rdata_o <= memory[araddr_q[AddrW-1:2]];
      rresp_o <= 32'(araddr_q[AddrW-1:2]) < Refused ? 2'd0 : 2'd2;
    end
    if (rst_i) begin
      {aw_q, w_q, ar_q, bvalid_o, rvalid_o} <= '0;
      memory[Control] <= '0;
    end else begin
      aw_q <= (awvalid_i && awready_o) || (aw_q && !apply);
      w_q <= (wvalid_i && wready_o) || (w_q && !apply);
      ar_q <= (arvalid_i && arready_o) || (ar_q && !read);
      bvalid_o <= apply || (bvalid_o && !bready_i);
      rvalid_o <= read || (rvalid_o && !rready_i);
    end
  end
  assign control_o = memory[Control];
endmodule
