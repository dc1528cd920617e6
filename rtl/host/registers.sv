// SPDX-License-Identifier: Apache-2.0
// The generated register block, with plain signals on the machine's side.
module registers
  import gharial_pkg::*;
  import host_pkg::*;
#(
    parameter logic [63:0] MemBytes = 64'd16384,
    parameter logic [7:0] Kind = 8'd3
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

    input logic            clear_i,              // soft reset
    input logic            halt_i,               // one clock
    input failure_t        halt_failure_i,
    input logic     [31:0] halt_tag_i,
    input logic            completion_irq_i,
    input logic            busy_i,
    input logic            program_i,
    input logic     [31:0] program_id_i,
    input logic     [15:0] enc_slots_i,
    input logic     [15:0] pred_slots_i,
    input logic     [31:0] command_head_i,
    input logic     [31:0] completion_tail_i,
    input logic     [63:0] counter_i        [7],

    output logic        run_o,              // enabled and not halted
    output logic        enabled_o,
    output logic        halted_o,
    output logic        soft_reset_o,       // one clock
    output logic        latch_o,            // one clock
    output logic        irq_o,
    output logic [63:0] command_base_o,
    output logic [ 4:0] command_log2_o,
    output logic [31:0] command_tail_o,
    output logic [63:0] completion_base_o,
    output logic [ 4:0] completion_log2_o,
    output logic [31:0] completion_head_o,
    output logic [31:0] watchdog_o
);
  gharial_csr_pkg::gharial__in_t  to_csr;
  gharial_csr_pkg::gharial__out_t from_csr;

  gharial_csr u_csr (
      .clk(clk_i),
      .rst(rst_i),
      .s_axil_awready(s_axil_awready_o),
      .s_axil_awvalid(s_axil_awvalid_i),
      .s_axil_awaddr(s_axil_awaddr_i),
      .s_axil_awprot(s_axil_awprot_i),
      .s_axil_wready(s_axil_wready_o),
      .s_axil_wvalid(s_axil_wvalid_i),
      .s_axil_wdata(s_axil_wdata_i),
      .s_axil_wstrb(s_axil_wstrb_i),
      .s_axil_bready(s_axil_bready_i),
      .s_axil_bvalid(s_axil_bvalid_o),
      .s_axil_bresp(s_axil_bresp_o),
      .s_axil_arready(s_axil_arready_o),
      .s_axil_arvalid(s_axil_arvalid_i),
      .s_axil_araddr(s_axil_araddr_i),
      .s_axil_arprot(s_axil_arprot_i),
      .s_axil_rready(s_axil_rready_i),
      .s_axil_rvalid(s_axil_rvalid_o),
      .s_axil_rdata(s_axil_rdata_o),
      .s_axil_rresp(s_axil_rresp_o),
      .hwif_in(to_csr),
      .hwif_out(from_csr)
  );

  logic halted_q;
  failure_t failure_q;
  logic [31:0] tag_q;
  assign halted_o = halted_q;
  assign enabled_o = from_csr.CONTROL.enable.value;
  assign run_o = enabled_o && !halted_q;
  assign soft_reset_o = from_csr.CONTROL.soft_reset.value;
  assign latch_o = from_csr.COUNTER_SNAPSHOT.latch.value;
  assign irq_o = (from_csr.IRQ_ENABLE.completion.value && from_csr.IRQ_STATUS.completion.value) ||
      (from_csr.IRQ_ENABLE.halt.value && from_csr.IRQ_STATUS.halt.value);
  assign command_base_o = {from_csr.CMD_BASE_HI.value.value, from_csr.CMD_BASE_LO.value.value[31:6], 6'd0};
  assign command_tail_o = from_csr.CMD_TAIL.value.value;
  assign completion_base_o = {from_csr.CPL_BASE_HI.value.value, from_csr.CPL_BASE_LO.value.value[31:6], 6'd0};
  assign completion_head_o = from_csr.CPL_HEAD.value.value;
  assign watchdog_o = from_csr.WATCHDOG.value.value;

  function automatic logic [4:0] at_most_16(input logic [31:0] value);
    return (value > 32'd16) ? 5'd16 : value[4:0];
  endfunction
  assign command_log2_o = at_most_16(from_csr.CMD_LOG2.value.value);
  assign completion_log2_o = at_most_16(from_csr.CPL_LOG2.value.value);

  always_ff @(posedge clk_i) begin
    if (rst_i || clear_i) begin
      halted_q <= 1'b0;
      failure_q <= NoFailure;
      tag_q <= '0;
    end else if (halt_i && !halted_q) begin
      halted_q <= 1'b1;
      failure_q <= halt_failure_i;
      tag_q <= halt_tag_i;
    end
  end

  always_comb begin
    to_csr.ID.value.next = 32'h4748524C;
    to_csr.VERSION.value.next = 32'h00010001;
    to_csr.CONFIG_ID.value.next = gharial_config_pkg::ConfigId;
    to_csr.DEVICE.kind.next = Kind;
    to_csr.CONTROL.enable.hwclr = clear_i;
    to_csr.STATUS.ready.next = run_o;
    to_csr.STATUS.busy.next = busy_i;
    to_csr.STATUS.halted.next = halted_q;
    to_csr.STATUS.program_.next = program_i;
    to_csr.STATUS.fault.next = failure_q.fault;
    to_csr.STATUS.unit.next = failure_q.unit;
    to_csr.FAULT_DETAIL.value.next = failure_q.detail;
    to_csr.FAULT_TAG.value.next = tag_q;
    to_csr.MEM_SIZE_LO.value.next = MemBytes[31:0];
    to_csr.MEM_SIZE_HI.value.next = MemBytes[63:32];
    to_csr.ENC_SLOTS.value.next = program_i ? 32'(enc_slots_i) : '0;
    to_csr.PRED_SLOTS.value.next = program_i ? 32'(pred_slots_i) : '0;
    to_csr.CMD_TAIL.value.hwclr = clear_i;
    to_csr.CMD_HEAD.value.next = command_head_i;
    to_csr.CPL_TAIL.value.next = completion_tail_i;
    to_csr.CPL_HEAD.value.hwclr = clear_i;
    to_csr.IRQ_STATUS.completion.hwset = completion_irq_i;
    to_csr.IRQ_STATUS.halt.hwset = halt_i && !halted_q;
    to_csr.IRQ_STATUS.completion.hwclr = clear_i;
    to_csr.IRQ_STATUS.halt.hwclr = clear_i;
    to_csr.PROGRAM_ID.value.next = program_i ? program_id_i : '0;
    to_csr.CYCLES_LO.value.next = counter_i[0][31:0];
    to_csr.CYCLES_HI.value.next = counter_i[0][63:32];
    to_csr.ACTIVE_LO.value.next = counter_i[1][31:0];
    to_csr.ACTIVE_HI.value.next = counter_i[1][63:32];
    to_csr.WEIGHTS_LO.value.next = counter_i[2][31:0];
    to_csr.WEIGHTS_HI.value.next = counter_i[2][63:32];
    to_csr.DEPENDENCY_LO.value.next = counter_i[3][31:0];
    to_csr.DEPENDENCY_HI.value.next = counter_i[3][63:32];
    to_csr.BACKPRESSURE_LO.value.next = counter_i[4][31:0];
    to_csr.BACKPRESSURE_HI.value.next = counter_i[4][63:32];
    to_csr.LOADING_LO.value.next = counter_i[5][31:0];
    to_csr.LOADING_HI.value.next = counter_i[5][63:32];
    to_csr.IDLE_LO.value.next = counter_i[6][31:0];
    to_csr.IDLE_HI.value.next = counter_i[6][63:32];
  end
endmodule
