// SPDX-License-Identifier: Apache-2.0
// The host block: registers, rings, commands, state, and the AXI4 master (docs/blocks/host_block.md). What computes is behind entry_o and the memory ports.
module host_block
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
#(
    parameter logic [63:0] MemBytes = 64'(WindowBytes)
) (
    input logic clk_i,
    input logic rst_i,

    // Registers.
    input  logic        s_axil_awvalid_i,
    output logic        s_axil_awready_o,
    input  logic [ 7:0] s_axil_awaddr_i,
    input  logic [ 2:0] s_axil_awprot_i,
    input  logic        s_axil_wvalid_i,
    output logic        s_axil_wready_o,
    input  logic [31:0] s_axil_wdata_i,
    input  logic [ 3:0] s_axil_wstrb_i,
    output logic        s_axil_bvalid_o,
    input  logic        s_axil_bready_i,
    output logic [ 1:0] s_axil_bresp_o,
    input  logic        s_axil_arvalid_i,
    output logic        s_axil_arready_o,
    input  logic [ 7:0] s_axil_araddr_i,
    input  logic [ 2:0] s_axil_arprot_i,
    output logic        s_axil_rvalid_o,
    input  logic        s_axil_rready_i,
    output logic [31:0] s_axil_rdata_o,
    output logic [ 1:0] s_axil_rresp_o,
    output logic        irq_o,
    output logic [31:0] completions_o,
    output logic        halted_o,

    // Device memory.
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

    // The engine.
    output logic               engine_reset_o,
    output header_t            header_o,
    output logic               load_valid_o,
    output space_e             load_space_o,
    output logic        [26:0] load_addr_o,
    output logic        [31:0] load_data_o,
    output logic               entry_valid_o,
    input  logic               entry_ready_i,
    output entry_t             entry_o,
    input  logic               features_free_i,
    input  logic               result_valid_i,
    output logic               result_ready_o,
    input  write_t             result_i,
    input  logic               done_valid_i,
    output logic               done_ready_o,
    input  entry_done_t        done_i,
    input  logic               matrix_active_i,
    input  logic               matrix_blocked_i,
    input  logic               thread_waits_i,
    input  logic               threads_idle_i,
    input  logic        [31:0] instruction_i,     // the oldest thread's, for the watchdog

    // State.
    output logic             state_reset_o,
    output logic             send_valid_o,
    input  logic             send_ready_i,
    output slot_job_t        send_o,
    input  logic             send_done_i,
    output logic             move_valid_o,
    input  logic             move_ready_i,
    output slot_job_t        move_o,
    input  logic             move_done_i,
    output logic             data_valid_o,
    input  logic             data_ready_i,
    output logic      [31:0] data_o,
    input  logic             save_valid_i,
    output logic             save_ready_o,
    input  write_t           save_i
);
  logic hold, purge, drop_pending, reset;
  assign engine_reset_o = rst_i || reset;

  // Program.
  logic program_valid;
  logic [31:0] program_id;
  logic [15:0] enc_slots, pred_slots;

  // Rings and commands on their way.
  logic run, front_halt, front_busy, completer_halt, completer_empty, completions_held, completion_irq;
  logic [63:0] clock, command_base, completion_base, oldest_clock;
  logic [4:0] command_log2, completion_log2;
  logic [31:0] command_tail, command_head, completion_head, completion_tail, oldest_tag;
  failure_t front_failure, completer_failure;
  logic command_valid, command_ready;
  command_t command;
  assign completions_o = completion_tail;

  // The bus.
  logic reader_idle, writer_idle, load_read, load_read_ready, send_read, send_read_ready;
  logic move_read, move_read_ready, front_read, front_read_ready, completion_valid, completion_ready;
  logic load_data, front_data, load_error, slots_error, front_error, write_error;
  logic [31:0] read_error_addr, write_error_addr;
  read_t load_addr, send_addr, move_addr, front_addr;
  write_t completion;

  host_control #(
      .MemBytes(MemBytes)
  ) u_control (
      .clk_i,
      .rst_i,
      .s_axil_awvalid_i,
      .s_axil_awready_o,
      .s_axil_awaddr_i,
      .s_axil_awprot_i,
      .s_axil_wvalid_i,
      .s_axil_wready_o,
      .s_axil_wdata_i,
      .s_axil_wstrb_i,
      .s_axil_bvalid_o,
      .s_axil_bready_i,
      .s_axil_bresp_o,
      .s_axil_arvalid_i,
      .s_axil_arready_o,
      .s_axil_araddr_i,
      .s_axil_arprot_i,
      .s_axil_rvalid_o,
      .s_axil_rready_i,
      .s_axil_rdata_o,
      .s_axil_rresp_o,
      .irq_o,
      .halted_o,
      .run_o(run),
      .command_base_o(command_base),
      .command_log2_o(command_log2),
      .command_tail_o(command_tail),
      .command_head_i(command_head),
      .completion_base_o(completion_base),
      .completion_log2_o(completion_log2),
      .completion_head_o(completion_head),
      .completion_tail_i(completion_tail),
      .completion_irq_i(completion_irq),
      .program_i(program_valid),
      .program_id_i(program_id),
      .enc_slots_i(enc_slots),
      .pred_slots_i(pred_slots),
      .front_halt_i(front_halt),
      .front_failure_i(front_failure),
      .completer_halt_i(completer_halt),
      .completer_failure_i(completer_failure),
      .front_busy_i(front_busy),
      .front_clock_i(command.clock),
      .completer_empty_i(completer_empty),
      .oldest_clock_i(oldest_clock),
      .oldest_tag_i(oldest_tag),
      .front_tag_i(command.tag),
      .instruction_i,
      .bus_idle_i(reader_idle && writer_idle),
      .hold_o(hold),
      .purge_o(purge),
      .drop_pending_o(drop_pending),
      .reset_o(reset),
      .held_back_i(completions_held && (threads_idle_i || done_valid_i)),
      .matrix_active_i,
      .matrix_blocked_i,
      .starved_i(1'b0),
      .thread_waits_i,
      .threads_idle_i,
      .clock_o(clock)
  );

  host_bus u_bus (
      .clk_i,
      .rst_i,
      .hold_i(hold),
      .reader_idle_o(reader_idle),
      .writer_idle_o(writer_idle),
      .load_valid_i(load_read),
      .load_ready_o(load_read_ready),
      .load_i(load_addr),
      .send_valid_i(send_read),
      .send_ready_o(send_read_ready),
      .send_i(send_addr),
      .move_valid_i(move_read),
      .move_ready_o(move_read_ready),
      .move_i(move_addr),
      .front_valid_i(front_read),
      .front_ready_o(front_read_ready),
      .front_i(front_addr),
      .data_o,
      .load_data_o(load_data),
      .slots_data_o(data_valid_o),
      .slots_ready_i(data_ready_i),
      .front_data_o(front_data),
      .load_error_o(load_error),
      .slots_error_o(slots_error),
      .front_error_o(front_error),
      .read_error_addr_o(read_error_addr),
      .completion_valid_i(completion_valid),
      .completion_ready_o(completion_ready),
      .completion_i(completion),
      .save_valid_i,
      .save_ready_o,
      .save_i,
      .result_valid_i,
      .result_ready_o,
      .result_i,
      .write_error_o(write_error),
      .write_error_addr_o(write_error_addr),
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
      .m_axi_bresp_i
  );

  logic drop, job_abort;
  logic [EncSlots-1:0] enc_none, drop_enc;
  logic [PredSlots-1:0] pred_none, drop_pred;
  assign state_reset_o = rst_i || hold || job_abort;

  command_stage #(
      .MemBytes(MemBytes)
  ) u_commands (
      .clk_i,
      .rst_i,
      .hold_i(hold),
      .drop_pending_i(drop_pending),
      .run_i(run),
      .base_i(command_base),
      .log2_i(command_log2),
      .tail_i(command_tail),
      .head_o(command_head),
      .clock_i(clock),
      .halt_o(front_halt),
      .halt_failure_o(front_failure),
      .busy_o(front_busy),
      .command_valid_o(command_valid),
      .command_ready_i(command_ready),
      .command_o(command),
      .empty_i(completer_empty),
      .enc_none_o(enc_none),
      .pred_none_o(pred_none),
      .drop_i(drop),
      .drop_enc_i(drop_enc),
      .drop_pred_i(drop_pred),
      .program_o(program_valid),
      .program_id_o(program_id),
      .header_o,
      .enc_slots_o(enc_slots),
      .pred_slots_o(pred_slots),
      .load_valid_o,
      .load_space_o,
      .load_addr_o,
      .load_data_o,
      .load_read_o(load_read),
      .load_read_ready_i(load_read_ready),
      .load_o(load_addr),
      .send_read_o(send_read),
      .send_read_ready_i(send_read_ready),
      .send_o(send_addr),
      .move_read_o(move_read),
      .move_read_ready_i(move_read_ready),
      .move_o(move_addr),
      .front_read_o(front_read),
      .front_read_ready_i(front_read_ready),
      .front_o(front_addr),
      .data_i(data_o),
      .load_data_i(load_data),
      .slots_taken_i(data_valid_o && data_ready_i),
      .front_data_i(front_data),
      .load_error_i(load_error),
      .slots_error_i(slots_error),
      .front_error_i(front_error),
      .error_addr_i(read_error_addr),
      .send_job_valid_o(send_valid_o),
      .send_job_ready_i(send_ready_i),
      .send_job_o(send_o),
      .send_job_done_i(send_done_i),
      .move_job_valid_o(move_valid_o),
      .move_job_ready_i(move_ready_i),
      .move_job_o(move_o),
      .move_job_done_i(move_done_i),
      .job_abort_o(job_abort),
      .features_free_i,
      .entry_valid_o,
      .entry_ready_i,
      .entry_o
  );

  completer u_completer (
      .clk_i,
      .rst_i(rst_i || reset),
      .purge_i(purge),
      .command_valid_i(command_valid),
      .command_ready_o(command_ready),
      .command_i(command),
      .empty_o(completer_empty),
      .done_valid_i,
      .done_ready_o,
      .done_i,
      .base_i(completion_base),
      .log2_i(completion_log2),
      .taken_i(completion_head),
      .tail_o(completion_tail),
      .held_o(completions_held),
      .clock_i(clock),
      .enc_none_i(enc_none),
      .pred_none_i(pred_none),
      .drop_o(drop),
      .drop_enc_o(drop_enc),
      .drop_pred_o(drop_pred),
      .word_valid_o(completion_valid),
      .word_ready_i(completion_ready),
      .word_o(completion),
      .writer_idle_i(writer_idle),
      .write_error_i(write_error),
      .write_error_addr_i(write_error_addr),
      .irq_o(completion_irq),
      .halt_o(completer_halt),
      .failure_o(completer_failure),
      .tag_o(oldest_tag),
      .oldest_clock_o(oldest_clock)
  );
endmodule
