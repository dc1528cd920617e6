// SPDX-License-Identifier: Apache-2.0
// Write side of the AXI4 master: single words, each with its address, up to Outstanding of them on their way.
module axi_writer #(
    parameter int unsigned Outstanding = 8  // a power of two
) (
    input logic clk_i,
    input logic rst_i,

    input  logic        valid_i,
    output logic        ready_o,
    input  logic [63:0] addr_i,
    input  logic [31:0] data_i,
    output logic        idle_o,       // everything taken has been answered
    output logic        error_o,      // one clock
    output logic [31:0] error_addr_o, // of the oldest word that had no answer

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
  localparam int unsigned CountW = $clog2(Outstanding + 1);

  logic address_q, word_q;  // still to be taken
  logic [63:0] addr_q;
  logic [31:0] data_q;
  logic [CountW-1:0] count_q;
  logic [31:0] oldest_addr;
  logic take, answered;

  assign ready_o = !address_q && !word_q && 32'(count_q) < Outstanding;
  assign take = valid_i && ready_o;
  assign answered = m_axi_bvalid_i;
  assign m_axi_bready_o = 1'b1;
  assign m_axi_awvalid_o = address_q;
  assign m_axi_awaddr_o = addr_q;
  assign m_axi_wvalid_o = word_q;
  assign m_axi_wdata_o = data_q;
  assign idle_o = count_q == '0;

  // Addresses of the words that have no answer yet: as many as count_q.
  logic unused_room, unused_valid;
  small_fifo #(
      .Width(32),
      .Depth(Outstanding)
  ) u_pending (
      .clk_i,
      .rst_i,
      .push_valid_i(take),
      .push_ready_o(unused_room),
      .push_data_i (addr_i[31:0]),
      .pop_valid_o (unused_valid),
      .pop_ready_i (answered),
      .pop_data_o  (oldest_addr)
  );

  always_ff @(posedge clk_i) begin
    error_o <= answered && m_axi_bresp_i != 2'b00;
    if (answered) error_addr_o <= oldest_addr;
    if (take) begin
      addr_q <= addr_i;
      data_q <= data_i;
    end
    if (rst_i) begin
      address_q <= 1'b0;
      word_q <= 1'b0;
      count_q <= '0;
    end else begin
      count_q <= count_q + CountW'(take) - CountW'(answered);
      if (take) begin
        address_q <= 1'b1;
        word_q <= 1'b1;
      end else begin
        if (m_axi_awready_i) address_q <= 1'b0;
        if (m_axi_wready_i) word_q <= 1'b0;
      end
    end
  end
endmodule
