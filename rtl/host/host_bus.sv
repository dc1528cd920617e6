// SPDX-License-Identifier: Apache-2.0
// The AXI4 master, shared: four readers with three consumers of words, one request at a time; three writers, word by word.
//
// First of the readers is the program loader, then features, restored slots, and the front; first of the writers are completions, then saved slots, results.
module host_bus
  import host_pkg::*;
(
    input logic clk_i,
    input logic rst_i,
    input logic hold_i, // soft reset: nothing new; what is under way comes to its end

    output logic reader_idle_o,
    output logic writer_idle_o,

    // Readers.
    input  logic  load_valid_i,
    output logic  load_ready_o,
    input  read_t load_i,
    input  logic  send_valid_i,
    output logic  send_ready_o,
    input  read_t send_i,
    input  logic  move_valid_i,
    output logic  move_ready_o,
    input  read_t move_i,
    input  logic  front_valid_i,
    output logic  front_ready_o,
    input  read_t front_i,

    // Words and failures, to those who asked.
    output logic [31:0] data_o,
    output logic        load_data_o,       // valid
    output logic        slots_data_o,
    input  logic        slots_ready_i,     // only features and slots may be held back
    output logic        front_data_o,
    output logic        load_error_o,
    output logic        slots_error_o,
    output logic        front_error_o,
    output logic [31:0] read_error_addr_o,

    // Writers.
    input  logic   completion_valid_i,
    output logic   completion_ready_o,
    input  write_t completion_i,
    input  logic   save_valid_i,
    output logic   save_ready_o,
    input  write_t save_i,
    input  logic   result_valid_i,
    output logic   result_ready_o,
    input  write_t result_i,

    output logic        write_error_o,
    output logic [31:0] write_error_addr_o,

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
  typedef enum logic [1:0] {
    ToFront,
    ToSlots,
    ToLoader
  } consumer_e;

  consumer_e consumer_q;
  logic read_valid, read_ready, data_valid, data_ready, read_error;
  read_t read;

  assign read_valid = load_valid_i || send_valid_i || move_valid_i || front_valid_i;
  always_comb begin
    read = front_i;
    if (load_valid_i) read = load_i;
    else if (send_valid_i) read = send_i;
    else if (move_valid_i) read = move_i;
  end
  assign load_ready_o  = read_ready;
  assign send_ready_o  = read_ready && !load_valid_i;
  assign move_ready_o  = read_ready && !load_valid_i && !send_valid_i;
  assign front_ready_o = read_ready && !load_valid_i && !send_valid_i && !move_valid_i;

  always_ff @(posedge clk_i) begin
    if (read_valid && read_ready) begin
      consumer_q <= load_valid_i ? ToLoader : (send_valid_i || move_valid_i) ? ToSlots : ToFront;
    end
  end

  assign data_ready = consumer_q != ToSlots || slots_ready_i;
  assign load_data_o = data_valid && consumer_q == ToLoader;
  assign slots_data_o = data_valid && consumer_q == ToSlots;
  assign front_data_o = data_valid && consumer_q == ToFront;
  assign load_error_o = read_error && consumer_q == ToLoader;
  assign slots_error_o = read_error && consumer_q == ToSlots;
  assign front_error_o = read_error && consumer_q == ToFront;

  axi_reader u_reader (
      .clk_i,
      .rst_i,
      .req_valid_i(read_valid),
      .req_ready_o(read_ready),
      .req_addr_i(read.addr),
      .req_words_i(read.words),
      .data_valid_o(data_valid),
      .data_ready_i(data_ready),
      .data_o,
      .error_o(read_error),
      .error_addr_o(read_error_addr_o),
      .idle_o(reader_idle_o),
      .abort_i(hold_i),
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

  logic write_valid, write_ready;
  write_t write;
  assign write_valid = (completion_valid_i || save_valid_i || result_valid_i) && !hold_i;
  always_comb begin
    write = result_i;
    if (completion_valid_i) write = completion_i;
    else if (save_valid_i) write = save_i;
  end
  assign completion_ready_o = write_ready && !hold_i;
  assign save_ready_o = write_ready && !hold_i && !completion_valid_i;
  assign result_ready_o = write_ready && !hold_i && !completion_valid_i && !save_valid_i;

  axi_writer u_writer (
      .clk_i,
      .rst_i,
      .valid_i(write_valid),
      .ready_o(write_ready),
      .addr_i(write.addr),
      .data_i(write.data),
      .idle_o(writer_idle_o),
      .error_o(write_error_o),
      .error_addr_o(write_error_addr_o),
      .m_axi_awvalid_o,
      .m_axi_awready_i,
      .m_axi_awaddr_o,
      .m_axi_wvalid_o,
      .m_axi_wready_i,
      .m_axi_wdata_o,
      .m_axi_bvalid_i,
      .m_axi_bready_o,
      .m_axi_bresp_i
  );
endmodule
