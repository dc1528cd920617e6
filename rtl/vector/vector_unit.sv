// SPDX-License-Identifier: Apache-2.0
// Finishes the matrix unit's results, one unit of four rows a clock: requantises, adds to the sums, applies the post-operation and writes
// where its output belongs. Contract, and the clock of each stage: docs/blocks/vector_unit.md. Nothing after the walk ever waits.
//
// Signals that change their meaning from clock to clock carry the number of their clock, 0 being the one in which a result is taken.
module vector_unit
  import gharial_pkg::*;
  import vector_pkg::*;
#(
    parameter int unsigned Rows = gharial_config_pkg::Rows,
    parameter int unsigned Cols = gharial_config_pkg::Cols,
    parameter int unsigned SumGroups = gharial_config_pkg::SumGroups,
    parameter int unsigned ScaleAddrW = $clog2(gharial_config_pkg::ScaleBytes / 16),  // of units: four scale words
    parameter int unsigned BiasAddrW = $clog2(gharial_config_pkg::BiasBytes / 16),  // of units: four biases
    parameter string Multiplier = "GENERIC",  // "ECP5" or "GENERIC"
    parameter int unsigned Halves = Rows / 4,  // derived: units of a row group, halfwords of a cell unit
    parameter int unsigned QuadW = $clog2(Halves)  // derived
) (
    input logic clk_i,
    input logic rst_i,

    // Table space, by words.
    input logic        load_valid_i,
    input logic [15:0] load_addr_i,
    input logic [31:0] load_data_i,

    // Jobs, in the order of the matrix unit's.
    input  logic     job_valid_i,
    output logic     job_ready_o,
    input  vec_job_t job_i,

    // Results of the matrix unit.
    input  logic               res_valid_i,
    output logic               res_ready_o,
    input  logic signed [31:0] res_sums_i  [4],
    input  logic        [15:0] res_group_i,
    input  logic        [ 1:0] res_vector_i,
    input  logic        [15:0] res_quad_i,
    input  logic               res_last_i,

    // Scales and biases; data two clocks after the address.
    output logic                         scale_en_o,
    output logic        [ScaleAddrW-1:0] scale_addr_o,
    input  logic        [          31:0] scale_data_i[4],
    output logic                         bias_en_o,
    output logic        [ BiasAddrW-1:0] bias_addr_o,
    input  logic signed [          31:0] bias_data_i [4],

    // Cells; data two clocks after the address.
    output logic                 cell_re_o,
    output logic [CellAddrW-1:0] cell_raddr_o,
    input  logic [16*Halves-1:0] cell_rdata_i,
    output logic                 cell_we_o,
    output logic [CellAddrW-1:0] cell_waddr_o,
    output logic [16*Halves-1:0] cell_wdata_o,
    output logic [   Halves-1:0] cell_wmask_o,

    // Activations.
    output logic                act_we_o,
    output logic [ActAddrW-1:0] act_waddr_o,
    output logic [  8*Cols-1:0] act_wdata_o,
    output logic [    Cols-1:0] act_wmask_o,

    // Logits.
    output logic               logit_valid_o,
    output logic        [15:0] logit_quad_o,
    output logic signed [15:0] logit_data_o [4],
    output logic               logit_last_o,

    // Finished jobs: what they write to activations is there ReportLead clocks later.
    output logic    retire_valid_o,
    output thread_e retire_thread_o
);
  localparam int unsigned SumUnits = SumGroups * Halves;
  localparam int unsigned SumAddrW = $clog2(SumUnits);
  localparam int unsigned LaneW = $clog2(Cols);

  // Clocks of the stages.
  localparam int unsigned ControlAt = 2;  // control of a unit; its accumulators meet their scale words
  localparam int unsigned ArgumentAt = 8;  // new sums; function tables are addressed
  localparam int unsigned CellReadAt = 10;
  localparam int unsigned OutputAt = 10;  // y of four rows
  localparam int unsigned NewCellAt = 21;
  localparam int unsigned NewHAt = 30;
  // From the report of a job to its last activations: the clocks that the sequencer and the matrix unit take to read them, less one.
  localparam int unsigned ReportLead = 4;
  localparam int unsigned ReportAt = NewHAt - ReportLead;

  // What a unit's output needs to know: all units, and those whose output is an activation.
  typedef struct packed {
    logic is_cell;
    logic is_i8;
    logic last_output;
    logic [15:0] target;
    logic [LaneW-1:0] lane;
    logic second_valid;
    logic [ActAddrW-1:0] second;
  } output_t;

  typedef struct packed {
    output_t out;
    logic job_end;
    way_e way;
    logic is_i16;
    logic is_logit;
    logic [QuadW-1:0] quad;
    logic [CellAddrW-1:0] cell_write;
    logic [3:0] shift;
    logic [6:0] i8_high;
    logic i8_signed;
  } unit_t;

  // Clocks 0 to 2: which unit this is, and what becomes of it.
  unit_t   unit2;
  thread_e thread2;
  logic valid2, fresh2, keep2;
  logic [SumAddrW-1:0] sum_addr2;
  logic [BiasAddrW-1:0] bias_addr2;
  logic [CellAddrW-1:0] cell_read2;
  logic [3:0] qh2;

  unit_walk #(
      .Rows(Rows),
      .Cols(Cols),
      .ScaleAddrW(ScaleAddrW),
      .BiasAddrW(BiasAddrW),
      .SumAddrW(SumAddrW),
      .CellClocks(NewCellAt - CellReadAt + 1)
  ) u_walk (
      .clk_i,
      .rst_i,
      .job_valid_i,
      .job_ready_o,
      .job_i,
      .res_valid_i,
      .res_ready_o,
      .res_group_i,
      .res_vector_i,
      .res_quad_i,
      .res_last_i,
      .scale_en_o,
      .scale_addr_o,
      .valid_o(valid2),
      .fresh_o(fresh2),
      .keep_o(keep2),
      .is_cell_o(unit2.out.is_cell),
      .is_i16_o(unit2.is_i16),
      .is_i8_o(unit2.out.is_i8),
      .is_logit_o(unit2.is_logit),
      .last_output_o(unit2.out.last_output),
      .job_end_o(unit2.job_end),
      .way_o(unit2.way),
      .thread_o(thread2),
      .quad_o(unit2.quad),
      .sum_addr_o(sum_addr2),
      .bias_addr_o(bias_addr2),
      .target_o(unit2.out.target),
      .lane_o(unit2.out.lane),
      .second_valid_o(unit2.out.second_valid),
      .second_o(unit2.out.second),
      .cell_read_o(cell_read2),
      .cell_write_o(unit2.cell_write),
      .shift_o(unit2.shift),
      .qh_o(qh2),
      .i8_high_o(unit2.i8_high),
      .i8_signed_o(unit2.i8_signed)
  );

  // Which clocks a unit is in.
  logic [NewHAt:ControlAt+1] valid_q;

  always_ff @(posedge clk_i) begin
    valid_q <= rst_i ? '0 : {valid_q[NewHAt-1:ControlAt+1], valid2};
  end

  // Clocks 2 to 10: requantise, add, round.
  logic signed [31:0] acc1_q[4], acc2_q[4];
  logic [22:0] scale2[4];
  logic [17:0] argument8[4];
  logic negative8[4];
  logic signed [15:0] y10[4];

  always_ff @(posedge clk_i) begin
    acc1_q <= res_sums_i;
    acc2_q <= acc1_q;
  end

  for (genvar r = 0; r < 4; r++) begin : gen_scale
    assign scale2[r] = scale_data_i[r][22:0];
    logic unused;
    assign unused = &{1'b0, scale_data_i[r][31:23]};
  end

  sum_stage #(
      .Multiplier(Multiplier),
      .SumUnits  (SumUnits),
      .BiasAddrW (BiasAddrW)
  ) u_sums (
      .clk_i,
      .rst_i,
      .acc_i(acc2_q),
      .scale_i(scale2),
      .valid_i(valid2),
      .fresh_i(fresh2),
      .keep_i(keep2),
      .sum_addr_i(sum_addr2),
      .bias_addr_i(bias_addr2),
      .bias_en_o,
      .bias_addr_o,
      .bias_data_i,
      .argument_o(argument8),
      .negative_o(negative8),
      .y_o(y10)
  );

  // The unit's control, where it is needed.
  logic is_cell10;
  logic [QuadW-1:0] quad10;
  logic [CellAddrW-1:0] cell_read10;
  logic [3:0] qc8, qh8;
  unit_t unit10;
  output_t out30;
  logic is_cell21;
  logic [QuadW-1:0] quad21;
  logic [CellAddrW-1:0] cell_write21;

  delay_line #(
      .Width (8),
      .Clocks(ArgumentAt - ControlAt)
  ) u_to_argument (
      .clk_i,
      .rst_i,
      .data_i({unit2.shift, qh2}),
      .data_o({qc8, qh8})
  );

  delay_line #(
      .Width (1 + QuadW + CellAddrW),
      .Clocks(CellReadAt - ControlAt)
  ) u_to_cell_read (
      .clk_i,
      .rst_i,
      .data_i({unit2.out.is_cell, unit2.quad, cell_read2}),
      .data_o({is_cell10, quad10, cell_read10})
  );

  delay_line #(
      .Width ($bits(unit_t)),
      .Clocks(OutputAt - ControlAt)
  ) u_to_output (
      .clk_i,
      .rst_i,
      .data_i(unit2),
      .data_o(unit10)
  );

  delay_line #(
      .Width (1 + QuadW + CellAddrW),
      .Clocks(NewCellAt - OutputAt)
  ) u_to_new_cell (
      .clk_i,
      .rst_i,
      .data_i({unit10.out.is_cell, unit10.quad, unit10.cell_write}),
      .data_o({is_cell21, quad21, cell_write21})
  );

  delay_line #(
      .Width ($bits(output_t)),
      .Clocks(NewHAt - OutputAt)
  ) u_to_new_h (
      .clk_i,
      .rst_i,
      .data_i(unit10.out),
      .data_o(out30)
  );

  // Clocks 8 to 30: the cell.
  logic signed [15:0] c14, c21;
  logic signed [7:0] h30;

  lstm_cell #(
      .Multiplier(Multiplier)
  ) u_cell (
      .clk_i,
      .rst_i,
      .load_valid_i,
      .load_addr_i,
      .load_data_i,
      .argument_i(argument8),
      .negative_i(negative8),
      .qc_i(qc8),
      .qh_i(qh8),
      .c_i(c14),
      .c_o(c21),
      .h_o(h30)
  );

  // Outputs.
  logic [Ways-1:0] done;

  cell_port #(
      .Rows(Rows)
  ) u_cell_port (
      .clk_i,
      .rst_i,
      .cell_re_o,
      .cell_raddr_o,
      .cell_rdata_i,
      .cell_we_o,
      .cell_waddr_o,
      .cell_wdata_o,
      .cell_wmask_o,
      .read_valid_i(valid_q[CellReadAt] && is_cell10),
      .read_quad_i(quad10),
      .read_addr_i(cell_read10),
      .c_o(c14),
      .new_valid_i(valid_q[NewCellAt] && is_cell21),
      .new_quad_i(quad21),
      .new_addr_i(cell_write21),
      .new_c_i(c21),
      .i16_valid_i(valid_q[OutputAt] && (unit10.is_i16 || (unit10.job_end && unit10.way == WayI16))),
      .i16_write_i(unit10.is_i16),
      .i16_job_end_i(unit10.job_end),
      .i16_quad_i(unit10.quad),
      .i16_addr_i(unit10.out.target),
      .i16_data_i(y10),
      .i16_done_o(done[WayI16])
  );

  assign logit_valid_o  = valid_q[OutputAt] && unit10.is_logit;
  assign logit_quad_o   = unit10.out.target;
  assign logit_data_o   = y10;
  assign logit_last_o   = unit10.out.last_output;
  assign done[WayShort] = valid_q[OutputAt] && unit10.job_end && unit10.way == WayShort;

  logic signed [7:0] i8_12[4], i8_31[4];

  int8_output u_int8 (
      .clk_i,
      .y_i(y10),
      .shift_i(unit10.shift),
      .high_i(unit10.i8_high),
      .signed_i(unit10.i8_signed),
      .value_o(i8_12)
  );

  delay_line #(
      .Width (32),
      .Clocks(NewHAt + 1 - OutputAt - 2)
  ) u_int8_to_31 (
      .clk_i,
      .rst_i,
      .data_i({i8_12[3], i8_12[2], i8_12[1], i8_12[0]}),
      .data_o({i8_31[3], i8_31[2], i8_31[1], i8_31[0]})
  );

  activation_writer #(
      .Cols(Cols)
  ) u_activation_writer (
      .clk_i,
      .rst_i,
      .act_we_o,
      .act_waddr_o,
      .act_wdata_o,
      .act_wmask_o,
      .h_valid_i(valid_q[NewHAt] && out30.is_cell),
      .i8_valid_i(valid_q[NewHAt] && out30.is_i8),
      .last_output_i(out30.last_output),
      .lane_i(out30.lane),
      .target_i(out30.target),
      .second_valid_i(out30.second_valid),
      .second_i(out30.second),
      .h_i(h30),
      .i8_i(i8_31)
  );

  // Ends of jobs of the long way, to one clock before their report; those with I8 or a second destination take one clock more.
  logic long_end10, long_late10;
  logic [  ReportAt:OutputAt] soon_q;
  logic [ReportAt+1:OutputAt] late_q;
  assign long_end10  = valid_q[OutputAt] && unit10.job_end && unit10.way == WayLong;
  assign long_late10 = unit10.out.is_i8 || unit10.out.second_valid;
  always_ff @(posedge clk_i) begin
    soon_q <= rst_i ? '0 : {soon_q[ReportAt-1:OutputAt], long_end10 && !long_late10};
    late_q <= rst_i ? '0 : {late_q[ReportAt:OutputAt], long_end10 && long_late10};
  end

  assign done[WayLong] = soon_q[ReportAt] || late_q[ReportAt+1];

  retire_order u_retire (
      .clk_i,
      .rst_i,
      .begun_valid_i(valid2 && unit2.job_end),
      .begun_way_i(unit2.way),
      .begun_thread_i(thread2),
      .done_i(done),
      .retire_valid_o,
      .retire_thread_o
  );
endmodule
