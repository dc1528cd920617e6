// SPDX-License-Identifier: Apache-2.0
// The command side of the batch machine: registers, rings, checks, slot table, program loading, slot commands, completions, and the AXI4 master of
// 32 bits (docs/blocks/command_block.md). What computes is behind the seater.
module command_block
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
  import seat_pkg::*;
  import slot_pkg::*;
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

    // Soft reset.
    output logic engine_reset_o,
    output logic hold_o,
    input  logic engine_idle_i,

    // Program.
    output header_t        header_o,
    output places_t        places_o,
    output logic           load_valid_o,
    output space_e         load_space_o,
    output logic    [26:0] load_addr_o,
    output logic    [31:0] load_data_o,

    // Work, and its ends.
    output logic                   work_valid_o,
    input  logic                   work_ready_i,
    output work_t                  work_o,
    input  logic                   done_valid_i,
    output logic                   done_ready_o,
    input  work_done_t             done_i,
    input  logic                   result_valid_i,
    output logic                   result_ready_o,
    input  write_t                 result_i,
    input  logic       [WorkW-1:0] result_work_i,

    // Entries, slots and features for the seater.
    input  logic                entry_valid_i,
    output logic                entry_ready_o,
    input  logic         [15:0] entry_index_i,
    output logic                entry_got_o,
    output entry_words_t        entry_o,
    input  logic                slot_valid_i,
    output logic                slot_ready_o,
    input  slot_ask_t           slot_i,
    output logic                slot_got_o,
    output slot_told_t          slot_o,
    input  logic                feature_valid_i,
    output logic                feature_ready_o,
    input  read_t               feature_i,
    output logic                data_valid_o,
    input  logic                data_ready_i,
    output logic         [31:0] data_o,
    output logic                data_error_o,
    output logic         [31:0] data_error_addr_o,

    // For the counters, and the watchdog.
    input logic        active_i,
    input logic        starved_i,
    input logic        blocked_i,
    input logic        waits_i,
    input logic        engine_busy_i,
    input logic [31:0] instruction_i
);
  logic hold, purge, reset, unused_drop;
  assign hold_o = hold;
  assign engine_reset_o = rst_i || reset;

  logic program_valid, run;
  logic [31:0] program_id;
  logic [15:0] enc_slots, pred_slots;
  logic front_halt, front_busy, completer_halt, completer_empty, completions_held, completion_irq;
  logic [63:0] clock, command_base, completion_base, oldest_clock;
  logic [4:0] command_log2, completion_log2;
  logic [31:0] command_tail, command_head, completion_head, oldest_tag;
  failure_t front_failure, completer_failure;
  logic [WorkW-1:0] oldest_work;
  way_t command;
  logic [31:0] data;

  // The bus.
  logic reader_idle, writer_idle, load_read, load_read_ready, move_read, move_read_ready, front_read, front_read_ready;
  logic completion_valid, completion_ready, save_valid, save_ready, result_ready;
  logic load_data, slots_data, slots_data_ready, front_data, load_error, slots_error, front_error, write_error;
  logic [31:0] read_error_addr, write_error_addr;
  read_t load_addr, move_addr, front_addr;
  write_t completion, save;

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
      .completion_tail_i(completions_o),
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
      .bus_idle_i(reader_idle && writer_idle && engine_idle_i),
      .hold_o(hold),
      .purge_o(purge),
      .drop_pending_o(unused_drop),
      .reset_o(reset),
      .held_back_i(completions_held && (!engine_busy_i || done_valid_i)),
      .matrix_active_i(active_i),
      .matrix_blocked_i(blocked_i),
      .starved_i,
      .thread_waits_i(waits_i),
      .threads_idle_i(!engine_busy_i),
      .clock_o(clock)
  );

  assign data_o = data;
  assign data_error_addr_o = read_error_addr;
  assign result_ready_o = result_ready;
  host_bus u_bus (
      .clk_i,
      .rst_i,
      .hold_i(hold),
      .reader_idle_o(reader_idle),
      .writer_idle_o(writer_idle),
      .load_valid_i(load_read),
      .load_ready_o(load_read_ready),
      .load_i(load_addr),
      .send_valid_i(feature_valid_i && !hold),
      .send_ready_o(feature_ready_o),
      .send_i(feature_i),
      .move_valid_i(move_read),
      .move_ready_o(move_read_ready),
      .move_i(move_addr),
      .front_valid_i(front_read),
      .front_ready_o(front_read_ready),
      .front_i(front_addr),
      .data_o(data),
      .load_data_o(load_data),
      .slots_data_o(slots_data),
      .slots_ready_i(slots_data_ready),
      .front_data_o(front_data),
      .load_error_o(load_error),
      .slots_error_o(slots_error),
      .front_error_o(front_error),
      .read_error_addr_o(read_error_addr),
      .completion_valid_i(completion_valid),
      .completion_ready_o(completion_ready),
      .completion_i(completion),
      .save_valid_i(save_valid),
      .save_ready_o(save_ready),
      .save_i(save),
      .result_valid_i,
      .result_ready_o(result_ready),
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

  // Whose each word is that is not answered yet.
  logic word_taken, word_answered, word_of_work, error_of_work_q, unused_room, unused_word;
  logic [WorkW-1:0] word_work, error_work_q;
  assign word_taken = (completion_valid && completion_ready) || (save_valid && save_ready) || (result_valid_i && result_ready);
  assign word_answered = m_axi_bvalid_i && m_axi_bready_o;
  small_fifo #(
      .Width(1 + WorkW),
      .Depth(8)
  ) u_words (
      .clk_i,
      .rst_i,
      .push_valid_i(word_taken),
      .push_ready_o(unused_room),
      .push_data_i({!(completion_valid && completion_ready), (save_valid && save_ready) ? oldest_work : result_work_i}),
      .pop_valid_o(unused_word),
      .pop_ready_i(word_answered),
      .pop_data_o({word_of_work, word_work})
  );
  always_ff @(posedge clk_i) {error_of_work_q, error_work_q} <= {word_of_work, word_work};

  logic moves_busy, moves_data_ready;
  assign slots_data_ready = moves_busy ? moves_data_ready : data_ready_i;
  assign data_valid_o = slots_data && !moves_busy;
  assign data_error_o = slots_error && !moves_busy;

  command_core #(
      .MemBytes(MemBytes)
  ) u_core (
      .clk_i,
      .rst_i,
      .hold_i(hold),
      .purge_i(purge),
      .reset_i(reset),
      .run_i(run),
      .command_base_i(command_base),
      .command_log2_i(command_log2),
      .command_tail_i(command_tail),
      .command_head_o(command_head),
      .completion_base_i(completion_base),
      .completion_log2_i(completion_log2),
      .completion_head_i(completion_head),
      .completion_tail_o(completions_o),
      .completion_irq_o(completion_irq),
      .held_o(completions_held),
      .clock_i(clock),
      .front_halt_o(front_halt),
      .front_failure_o(front_failure),
      .front_busy_o(front_busy),
      .command_o(command),
      .completer_halt_o(completer_halt),
      .completer_failure_o(completer_failure),
      .completer_empty_o(completer_empty),
      .oldest_clock_o(oldest_clock),
      .oldest_tag_o(oldest_tag),
      .oldest_work_o(oldest_work),
      .program_o(program_valid),
      .program_id_o(program_id),
      .header_o,
      .places_o,
      .enc_slots_o(enc_slots),
      .pred_slots_o(pred_slots),
      .load_valid_o,
      .load_space_o,
      .load_addr_o,
      .load_data_o,
      .work_valid_o,
      .work_ready_i,
      .work_o,
      .done_valid_i,
      .done_ready_o,
      .done_i,
      .entry_valid_i,
      .entry_ready_o,
      .entry_index_i,
      .entry_got_o,
      .entry_o,
      .slot_valid_i,
      .slot_ready_o,
      .slot_i,
      .slot_got_o,
      .slot_o,
      .data_i(data),
      .error_addr_i(read_error_addr),
      .front_read_o(front_read),
      .front_read_ready_i(front_read_ready),
      .front_o(front_addr),
      .front_data_i(front_data),
      .front_error_i(front_error),
      .load_read_o(load_read),
      .load_read_ready_i(load_read_ready),
      .load_o(load_addr),
      .load_data_i(load_data),
      .load_error_i(load_error),
      .moves_busy_o(moves_busy),
      .move_read_o(move_read),
      .move_read_ready_i(move_read_ready),
      .move_o(move_addr),
      .move_data_i(slots_data),
      .move_data_ready_o(moves_data_ready),
      .move_error_i(slots_error),
      .save_valid_o(save_valid),
      .save_ready_i(save_ready),
      .save_o(save),
      .writer_idle_i(writer_idle),
      .word_valid_o(completion_valid),
      .word_ready_i(completion_ready),
      .word_o(completion),
      .write_taken_i(word_taken),
      .write_answered_i(word_answered),
      .write_error_i(write_error),
      .write_error_addr_i(write_error_addr),
      .write_error_work_i(error_of_work_q),
      .write_work_i(error_work_q)
  );

  logic unused;
  assign unused = &{1'b0, unused_drop, unused_room, unused_word, command};  // a part of the command is for others
endmodule
