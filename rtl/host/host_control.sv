// SPDX-License-Identifier: Apache-2.0
// Registers and what acts on the whole host block: halting, watchdog, soft reset, counters.
module host_control
  import gharial_pkg::*;
  import host_pkg::*;
#(
    parameter logic [63:0] MemBytes = 64'd16384
) (
    input logic clk_i,
    input logic rst_i,

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
    output logic        halted_o,

    // Rings.
    output logic        run_o,              // commands may be fetched
    output logic [63:0] command_base_o,
    output logic [ 4:0] command_log2_o,
    output logic [31:0] command_tail_o,
    input  logic [31:0] command_head_i,
    output logic [63:0] completion_base_o,
    output logic [ 4:0] completion_log2_o,
    output logic [31:0] completion_head_o,
    input  logic [31:0] completion_tail_i,
    input  logic        completion_irq_i,

    // Program.
    input logic        program_i,
    input logic [31:0] program_id_i,
    input logic [15:0] enc_slots_i,
    input logic [15:0] pred_slots_i,

    // Halting.
    input logic     front_halt_i,        // one clock
    input failure_t front_failure_i,
    input logic     completer_halt_i,    // one clock
    input failure_t completer_failure_i,

    // The oldest command.
    input logic        front_busy_i,       // a command is fetched, checked or prepared
    input logic [63:0] front_clock_i,      // when it was fetched
    input logic        completer_empty_i,  // no command is on its way
    input logic [63:0] oldest_clock_i,
    input logic [31:0] oldest_tag_i,
    input logic [31:0] front_tag_i,
    input logic [31:0] instruction_i,      // where the threads are

    // Soft reset.
    input  logic bus_idle_i,
    output logic hold_o,
    output logic purge_o,
    output logic drop_pending_o,
    output logic reset_o,

    // Counters.
    input  logic        held_back_i,       // a completion waits for room in the ring, and all else for it
    input  logic        matrix_active_i,
    input  logic        matrix_blocked_i,
    input  logic        starved_i,         // for weights
    input  logic        thread_waits_i,
    input  logic        threads_idle_i,
    output logic [63:0] clock_o
);
  logic run, enabled, soft_request, latch, halt_q, watchdog_halt_q, busy;
  logic [31:0] watchdog, halt_tag_q;
  logic [63:0] age_q, latched[7];
  failure_t halt_failure_q;

  assign busy  = front_busy_i || !completer_empty_i;
  assign run_o = run && !halt_q;

  // The first who halts is told; where several do in one clock, the completer knows a command.
  // An age that is acted on is that of a command that still is the oldest: no completion since.
  logic aged_q;
  logic [2:0] completions_q;
  always_ff @(posedge clk_i) begin
    completions_q <= {completions_q[1:0], completion_tail_i[0]};
    age_q <= busy ? clock_o - (completer_empty_i ? front_clock_i : oldest_clock_i) : '0;
    aged_q <= watchdog != '0 && age_q > 64'(watchdog);
    watchdog_halt_q <= aged_q && run && busy && completions_q == {3{completion_tail_i[0]}};

    halt_q <= front_halt_i || completer_halt_i || watchdog_halt_q;
    halt_failure_q <= '{fault: FaultWatchdog, unit: UnitSequencer, detail: instruction_i};
    halt_tag_q <= completer_empty_i ? front_tag_i : oldest_tag_i;
    if (completer_halt_i) halt_failure_q <= completer_failure_i;
    else if (front_halt_i) begin
      halt_failure_q <= front_failure_i;
      halt_tag_q <= '0;
    end
    if (rst_i || reset_o) {age_q, aged_q, watchdog_halt_q, halt_q} <= '0;
  end

  registers #(
      .MemBytes(MemBytes)
  ) u_registers (
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
      .clear_i(reset_o),
      .halt_i(halt_q),
      .halt_failure_i(halt_failure_q),
      .halt_tag_i(halt_tag_q),
      .completion_irq_i,
      .busy_i(hold_o || (busy && !halted_o)),
      .program_i,
      .program_id_i,
      .enc_slots_i,
      .pred_slots_i,
      .command_head_i,
      .completion_tail_i,
      .counter_i(latched),
      .run_o(run),
      .enabled_o(enabled),
      .halted_o,
      .soft_reset_o(soft_request),
      .latch_o(latch),
      .irq_o,
      .command_base_o,
      .command_log2_o,
      .command_tail_o,
      .completion_base_o,
      .completion_log2_o,
      .completion_head_o,
      .watchdog_o(watchdog)
  );

  soft_reset u_soft_reset (
      .clk_i,
      .rst_i,
      .request_i(soft_request),
      .bus_idle_i,
      .purged_i (completer_empty_i),
      .hold_o,
      .purge_o,
      .drop_pending_o,
      .reset_o
  );

  counters u_counters (
      .clk_i,
      .rst_i(rst_i || reset_o),
      .enable_i(enabled),
      .latch_i(latch),
      .active_i(matrix_active_i),
      .backpressure_i(matrix_blocked_i || held_back_i),
      .weights_i(starved_i),
      .dependency_i(thread_waits_i || !threads_idle_i),
      .loading_i(busy),
      .clock_o,
      .latched_o(latched)
  );
endmodule
