// SPDX-License-Identifier: Apache-2.0
// The device memory of on-chip configurations: one memory with an AXI4 slave for the core and an AXI4-Lite slave for the host. The host's accesses go
// first, one at a time; addresses beyond the memory answer with an error.
module window_memory #(
    parameter int unsigned Bytes = 16384,  // a power of two, at least 4096: no burst of the core goes over the end
    parameter int unsigned AddrW = $clog2(Bytes / 4)  // derived
) (
    input logic clk_i,
    input logic rst_i,

    // Host.
    input  logic        s_axil_awvalid_i,
    output logic        s_axil_awready_o,
    input  logic [31:0] s_axil_awaddr_i,
    input  logic        s_axil_wvalid_i,
    output logic        s_axil_wready_o,
    input  logic [31:0] s_axil_wdata_i,
    input  logic [ 3:0] s_axil_wstrb_i,
    output logic        s_axil_bvalid_o,
    input  logic        s_axil_bready_i,
    output logic [ 1:0] s_axil_bresp_o,
    input  logic        s_axil_arvalid_i,
    output logic        s_axil_arready_o,
    input  logic [31:0] s_axil_araddr_i,
    output logic        s_axil_rvalid_o,
    input  logic        s_axil_rready_i,
    output logic [31:0] s_axil_rdata_o,
    output logic [ 1:0] s_axil_rresp_o,

    // Core.
    input  logic        s_axi_arvalid_i,
    output logic        s_axi_arready_o,
    input  logic [63:0] s_axi_araddr_i,
    input  logic [ 7:0] s_axi_arlen_i,
    output logic        s_axi_rvalid_o,
    input  logic        s_axi_rready_i,
    output logic [31:0] s_axi_rdata_o,
    output logic [ 1:0] s_axi_rresp_o,
    output logic        s_axi_rlast_o,
    input  logic        s_axi_awvalid_i,
    output logic        s_axi_awready_o,
    input  logic [63:0] s_axi_awaddr_i,
    input  logic        s_axi_wvalid_i,
    output logic        s_axi_wready_o,
    input  logic [31:0] s_axi_wdata_i,
    output logic        s_axi_bvalid_o,
    input  logic        s_axi_bready_i,
    output logic [ 1:0] s_axi_bresp_o
);
  localparam logic [1:0] Okay = 2'b00;
  localparam logic [1:0] SlaveError = 2'b10;

  if (Bytes < 4096 || (Bytes & (Bytes - 1)) != 0) begin : gen_check
    $error("%m: Bytes must be a power of two, at least 4096");
  end

  logic host_write_beyond, host_read_beyond, core_write_beyond, core_read_beyond;
  assign host_write_beyond = s_axil_awaddr_i[31:AddrW+2] != '0;
  assign host_read_beyond  = s_axil_araddr_i[31:AddrW+2] != '0;
  assign core_write_beyond = s_axi_awaddr_i[63:AddrW+2] != '0;
  assign core_read_beyond  = s_axi_araddr_i[63:AddrW+2] != '0;

  // Write port: host first.
  // Write and response come a clock after the address: that is compared with the end first.
  logic host_write, core_write, host_written_q, core_written_q;
  logic [3:0] we, we_q;
  logic [AddrW-1:0] waddr, waddr_q;
  logic [31:0] wdata, wdata_q;
  assign host_write = s_axil_awvalid_i && s_axil_wvalid_i && !s_axil_bvalid_o && !host_written_q;
  assign core_write = s_axi_awvalid_i && s_axi_wvalid_i && !s_axi_bvalid_o && !core_written_q && !host_write;
  assign s_axil_awready_o = host_write;
  assign s_axil_wready_o = host_write;
  assign s_axi_awready_o = core_write;
  assign s_axi_wready_o = core_write;
  always_comb begin
    we = '0;
    waddr = s_axi_awaddr_i[AddrW+1:2];
    wdata = s_axi_wdata_i;
    if (host_write) begin
      waddr = s_axil_awaddr_i[AddrW+1:2];
      wdata = s_axil_wdata_i;
      if (!host_write_beyond) we = s_axil_wstrb_i;
    end else if (core_write && !core_write_beyond) begin
      we = '1;
    end
  end
  always_ff @(posedge clk_i) begin
    we_q <= we;
    waddr_q <= waddr;
    wdata_q <= wdata;
    if (rst_i) begin
      s_axil_bvalid_o <= 1'b0;
      s_axi_bvalid_o  <= 1'b0;
      host_written_q  <= 1'b0;
      core_written_q  <= 1'b0;
    end else begin
      host_written_q <= host_write;
      core_written_q <= core_write;
      if (host_written_q) s_axil_bvalid_o <= 1'b1;
      else if (s_axil_bready_i) s_axil_bvalid_o <= 1'b0;
      if (core_written_q) s_axi_bvalid_o <= 1'b1;
      else if (s_axi_bready_i) s_axi_bvalid_o <= 1'b0;
    end
    if (host_write) s_axil_bresp_o <= host_write_beyond ? SlaveError : Okay;
    if (core_write) s_axi_bresp_o <= core_write_beyond ? SlaveError : Okay;
  end

  // Read port: a host read takes the memory for one word, a core burst for all of its words unless the host comes.
  typedef enum logic [1:0] {
    ReadNone,
    ReadHost,
    ReadCore
  } reader_e;
  reader_e reader;
  reader_e way_q  [2];
  logic burst_q, burst_wrong_q, core_step, host_step, host_pending_q;
  logic [AddrW-1:0] burst_addr_q, raddr;
  logic [8:0] beats_q;
  logic last_way_q[2];
  logic [31:0] rdata;
  logic host_wrong_q;

  // Words of a burst that have been asked for and not taken wait in a queue.
  logic queue_ready, queue_valid;
  logic [3:0] on_way_q;
  assign host_step = s_axil_arvalid_i && !host_pending_q;
  assign s_axil_arready_o = host_step;
  assign core_step = burst_q && !host_step && on_way_q < 4'd8;
  assign reader = host_step ? ReadHost : core_step ? ReadCore : ReadNone;
  assign raddr = host_step ? s_axil_araddr_i[AddrW+1:2] : burst_addr_q;
  assign s_axi_arready_o = !burst_q && on_way_q == '0;

  lane_memory #(
      .Lanes(4),
      .LaneW(8),
      .Words(Bytes / 4)
  ) u_memory (
      .clk_i,
      .we_i(we_q),
      .waddr_i(waddr_q),
      .wdata_i(wdata_q),
      .re_i(reader != ReadNone),
      .raddr_i(raddr),
      .rdata_o(rdata)
  );

  small_fifo #(
      .Width(33),
      .Depth(8)
  ) u_queue (
      .clk_i,
      .rst_i,
      .push_valid_i(way_q[1] == ReadCore),
      .push_ready_o(queue_ready),
      .push_data_i ({last_way_q[1], rdata}),
      .pop_valid_o (queue_valid),
      .pop_ready_i (s_axi_rready_i),
      .pop_data_o  ({s_axi_rlast_o, s_axi_rdata_o})
  );
  // The queue is never full when something comes: no more is asked for than fits. Accesses are to whole words.
  logic unused;
  assign unused = &{1'b0, queue_ready, s_axil_awaddr_i, s_axil_araddr_i, s_axi_awaddr_i, s_axi_araddr_i};
  assign s_axi_rvalid_o = queue_valid;
  assign s_axi_rresp_o = burst_wrong_q ? SlaveError : Okay;

  always_ff @(posedge clk_i) begin
    way_q[0] <= reader;
    way_q[1] <= way_q[0];
    last_way_q[0] <= beats_q == 9'd1;
    last_way_q[1] <= last_way_q[0];
    if (host_step) host_wrong_q <= host_read_beyond;
    if (way_q[1] == ReadHost) begin
      s_axil_rdata_o <= rdata;
      s_axil_rresp_o <= host_wrong_q ? SlaveError : Okay;
    end
    if (s_axi_arvalid_i && s_axi_arready_o) begin
      burst_addr_q <= s_axi_araddr_i[AddrW+1:2];
      beats_q <= 9'(s_axi_arlen_i) + 9'd1;
      burst_wrong_q <= core_read_beyond;
    end else if (core_step) begin
      burst_addr_q <= burst_addr_q + AddrW'(1);
      beats_q <= beats_q - 9'd1;
    end

    if (rst_i) begin
      burst_q <= 1'b0;
      on_way_q <= '0;
      host_pending_q <= 1'b0;
      s_axil_rvalid_o <= 1'b0;
      way_q[0] <= ReadNone;
      way_q[1] <= ReadNone;
    end else begin
      if (s_axi_arvalid_i && s_axi_arready_o) burst_q <= 1'b1;
      else if (core_step && beats_q == 9'd1) burst_q <= 1'b0;
      on_way_q <= on_way_q + 4'(core_step) - 4'(queue_valid && s_axi_rready_i);
      if (host_step) host_pending_q <= 1'b1;
      else if (s_axil_rvalid_o && s_axil_rready_i) host_pending_q <= 1'b0;
      if (way_q[1] == ReadHost) s_axil_rvalid_o <= 1'b1;
      else if (s_axil_rready_i) s_axil_rvalid_o <= 1'b0;
    end
  end

`ifdef FORMAL
  always_ff @(posedge clk_i) if (!rst_i && way_q[1] == ReadCore) assert (queue_ready);
`endif
endmodule
