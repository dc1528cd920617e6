// SPDX-License-Identifier: Apache-2.0
// Read side of the AXI4 master: a request of any number of words becomes INCR bursts that do not cross 4 KiB, one outstanding, and a stream of words, each
// of which waits in a register to be taken. After an error response the rest of the request is dropped.
module axi_reader #(
    parameter int unsigned MaxBeats = 64  // of a burst, a power of two, at most 256
) (
    input logic clk_i,
    input logic rst_i,

    input  logic        req_valid_i,
    output logic        req_ready_o,
    input  logic [63:0] req_addr_i,   // a multiple of 4
    input  logic [26:0] req_words_i,  // at least 1

    output logic        data_valid_o,
    input  logic        data_ready_i,
    output logic [31:0] data_o,
    output logic        error_o,       // one clock: the request has failed
    output logic [31:0] error_addr_o,
    output logic        idle_o,
    input  logic        abort_i,       // end with the present burst, its words dropped

    output logic        m_axi_arvalid_o,
    input  logic        m_axi_arready_i,
    output logic [63:0] m_axi_araddr_o,
    output logic [ 7:0] m_axi_arlen_o,
    input  logic        m_axi_rvalid_i,
    output logic        m_axi_rready_o,
    input  logic [31:0] m_axi_rdata_i,
    input  logic [ 1:0] m_axi_rresp_i,
    input  logic        m_axi_rlast_i
);
  typedef enum logic [2:0] {
    Idle,
    Size,
    Address,
    Data,
    Failed    // the words before are taken, then the error is told
  } state_e;

  state_e state_q;
  logic [63:0] addr_q, burst_addr_q;
  logic [26:0] left_q;
  logic [ 8:0] beats_q;
  logic failed_q, aborted_q, full_q, bad, drop;
  assign drop = failed_q || aborted_q || abort_i || bad;  // the word on the bus

  // Beats to the next 4 KiB border, at most MaxBeats.
  logic [10:0] to_border;
  logic [ 8:0] beats;
  assign to_border = 11'd1024 - {1'b0, addr_q[11:2]};
  always_comb begin
    beats = 9'(MaxBeats);
    if (to_border < 11'(MaxBeats)) beats = 9'(to_border);
    if (left_q < 27'(beats)) beats = 9'(left_q);
  end

  assign idle_o = state_q == Idle && !full_q;
  assign req_ready_o = idle_o;
  assign m_axi_arvalid_o = state_q == Address;
  assign m_axi_araddr_o = burst_addr_q;
  assign m_axi_arlen_o = 8'(beats_q - 9'd1);
  assign bad = m_axi_rresp_i != 2'b00;
  assign data_valid_o = full_q;
  assign m_axi_rready_o = state_q == Data && (!full_q || data_ready_i || drop);
  assign error_addr_o = burst_addr_q[31:0];

  always_ff @(posedge clk_i) begin
    error_o <= 1'b0;
    if (abort_i) aborted_q <= 1'b1;
    if (m_axi_rvalid_i && m_axi_rready_o && !drop) begin
      data_o <= m_axi_rdata_i;
      full_q <= 1'b1;
    end else if (data_ready_i || abort_i) begin
      full_q <= 1'b0;
    end
    unique case (state_q)
      Idle: begin
        addr_q <= req_addr_i;
        left_q <= req_words_i;
        failed_q <= 1'b0;
        aborted_q <= 1'b0;
        if (req_valid_i && req_ready_o) state_q <= Size;
      end
      Size: begin
        burst_addr_q <= addr_q;
        beats_q <= beats;
        state_q <= (aborted_q || abort_i) ? Idle : Address;
      end
      Address: begin
        if (m_axi_arready_i) begin
          addr_q  <= addr_q + {53'd0, beats_q, 2'b00};
          left_q  <= left_q - 27'(beats_q);
          state_q <= Data;
        end
      end
      Data: begin
        if (m_axi_rvalid_i && m_axi_rready_o) begin
          if (bad) failed_q <= 1'b1;
          if (m_axi_rlast_i) state_q <= (failed_q || bad) ? Failed : (drop || left_q == '0) ? Idle : Size;
        end
      end
      default: begin
        if (!full_q || data_ready_i) begin
          error_o <= 1'b1;
          state_q <= Idle;
        end
      end
    endcase
    if (rst_i) begin
      state_q <= Idle;
      full_q  <= 1'b0;
    end
  end
endmodule
