// SPDX-License-Identifier: Apache-2.0
// What computes: sequencer, matrix, vector, aux and top-k unit, and all memories on chip.
module engine
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import sequencer_pkg::*;
#(
    parameter string Multiplier = "GENERIC"
) (
    input logic clk_i,
    input logic rst_i,

    input header_t        header_i,
    input logic           load_valid_i,
    input space_e         load_space_i,
    input logic    [26:0] load_addr_i,
    input logic    [31:0] load_data_i,

    input  logic                        entry_valid_i,
    output logic                        entry_ready_o,
    input  entry_t                      entry_i,
    output logic                        features_free_o,
    output logic                        result_valid_o,
    input  logic                        result_ready_i,
    output logic        [         63:0] result_addr_o,
    output logic        [         31:0] result_data_o,
    output logic                        done_valid_o,
    input  logic                        done_ready_i,
    output entry_done_t                 done_o,
    output logic                        zero_valid_o   [2],
    output logic        [ ActAddrW-1:0] zero_act_o     [2],
    output logic        [CellAddrW-1:0] zero_cell_o    [2],
    input  logic                        zero_done_i    [2],

    output logic        active_o,
    output logic        blocked_o,
    output logic        waits_o,
    output logic        idle_o,
    output logic [31:0] instruction_o,

    input  logic                 act_re_i,
    output logic                 act_re_ready_o,
    input  logic [ ActAddrW-1:0] act_raddr_i,
    output logic [   8*Cols-1:0] act_rdata_o,
    input  logic                 act_we_i,
    output logic                 act_ready_o,
    input  logic [ ActAddrW-1:0] act_waddr_i,
    input  logic [   8*Cols-1:0] act_wdata_i,
    input  logic                 cell_re_i,
    output logic                 cell_re_ready_o,
    input  logic [CellAddrW-1:0] cell_raddr_i,
    output logic [   4*Rows-1:0] cell_rdata_o,
    input  logic                 cell_we_i,
    output logic                 cell_ready_o,
    input  logic [CellAddrW-1:0] cell_waddr_i,
    input  logic [   4*Rows-1:0] cell_wdata_i
);
  localparam int unsigned Units = 2 * ScratchUnits + EncAUnits + PredAUnits;
  localparam int unsigned CellUnits = EncCUnits + PredCUnits;
  localparam int unsigned ScaleAddrW = $clog2(ScaleBytes / 16);
  localparam int unsigned BiasAddrW = $clog2(BiasBytes / 16);

  // What comes from the host block and changes long before it matters, or all at once, has a register here: its ways are long. Each unit's reset has its own.
  // verilator lint_off PROCASSINIT  // in reset from power-on, and not from a clock after rst_i
  (* keep *) logic rst_sequencer_q = 1'b1;
  (* keep *) logic rst_matrix_q = 1'b1;
  (* keep *) logic rst_vector_q = 1'b1;
  (* keep *) logic rst_aux_q = 1'b1;
  (* keep *) logic rst_topk_q = 1'b1;
  // verilator lint_on PROCASSINIT
  header_t header_q;
  logic load_valid_q;
  space_e load_space_q;
  logic [26:0] load_addr_q;
  logic [31:0] load_data_q;
  always_ff @(posedge clk_i) begin
    {rst_sequencer_q, rst_matrix_q, rst_vector_q, rst_aux_q, rst_topk_q} <= {5{rst_i}};
    header_q <= header_i;
    load_valid_q <= load_valid_i;
    load_space_q <= load_space_i;
    load_addr_q <= load_addr_i;
    load_data_q <= load_data_i;
  end

  logic code_en, weight_en, scale_en, bias_en, embed_en, matrix_en;
  logic [15:0] code_addr;
  logic [31:0] code_data, embed_addr;
  logic [23:0] weight_addr;
  logic [Rows*Cols*8-1:0] weight_data;
  logic [ScaleAddrW-1:0] scale_addr;
  logic [BiasAddrW-1:0] bias_addr;
  logic [31:0] scale_data[4];
  logic signed [31:0] bias_data[4];
  logic [8*Cols-1:0] embed_data, act_data;
  logic [4*Rows-1:0] cell_data;

  // The program.
  logic table_valid;
  program_memories u_program (
      .clk_i,
      .load_valid_i(load_valid_q),
      .load_space_i(load_space_q),
      .load_addr_i(load_addr_q),
      .load_data_i(load_data_q),
      .table_valid_o(table_valid),
      .code_en_i(code_en),
      .code_addr_i(code_addr),
      .code_data_o(code_data),
      .weight_en_i(weight_en),
      .weight_addr_i(weight_addr),
      .weight_data_o(weight_data),
      .scale_en_i(scale_en),
      .scale_addr_i(scale_addr),
      .scale_data_o(scale_data),
      .bias_en_i(bias_en),
      .bias_addr_i(bias_addr),
      .bias_data_o(bias_data),
      .embed_en_i(embed_en),
      .embed_addr_i(embed_addr),
      .embed_data_o(embed_data)
  );

  // State and activations.
  logic [ActAddrW-1:0] matrix_addr, vector_addr, aux_addr;
  logic vector_we, aux_we, aux_act_ready;
  logic [8*Cols-1:0] vector_data, aux_data;
  logic [Cols-1:0] vector_mask, aux_mask;
  activation_memory #(
      .Rows (Rows),
      .Cols (Cols),
      .Units(Units)
  ) u_activations (
      .clk_i,
      .matrix_en_i(matrix_en),
      .matrix_addr_i(matrix_addr),
      .host_re_i(act_re_i),
      .host_re_ready_o(act_re_ready_o),
      .host_raddr_i(act_raddr_i),
      .rdata_o(act_data),
      .vector_we_i(vector_we),
      .vector_addr_i(vector_addr),
      .vector_data_i(vector_data),
      .vector_mask_i(vector_mask),
      .aux_we_i(aux_we),
      .aux_ready_o(aux_act_ready),
      .aux_addr_i(aux_addr),
      .aux_data_i(aux_data),
      .aux_mask_i(aux_mask),
      .host_we_i(act_we_i),
      .host_ready_o(act_ready_o),
      .host_addr_i(act_waddr_i),
      .host_data_i(act_wdata_i)
  );
  assign act_rdata_o = act_data;

  logic vector_cell_re, aux_cell_re, aux_cell_ready, vector_cell_we;
  logic [CellAddrW-1:0] vector_cell_raddr, aux_cell_raddr, vector_cell_waddr;
  logic [4*Rows-1:0] vector_cell_wdata;
  logic [Rows/4-1:0] vector_cell_wmask;
  cell_memory #(
      .Rows (Rows),
      .Units(CellUnits)
  ) u_cells (
      .clk_i,
      .vector_re_i(vector_cell_re),
      .vector_raddr_i(vector_cell_raddr),
      .aux_re_i(aux_cell_re),
      .aux_ready_o(aux_cell_ready),
      .aux_raddr_i(aux_cell_raddr),
      .host_re_i(cell_re_i),
      .host_re_ready_o(cell_re_ready_o),
      .host_raddr_i(cell_raddr_i),
      .rdata_o(cell_data),
      .vector_we_i(vector_cell_we),
      .vector_waddr_i(vector_cell_waddr),
      .vector_wdata_i(vector_cell_wdata),
      .vector_wmask_i(vector_cell_wmask),
      .host_we_i(cell_we_i),
      .host_ready_o(cell_ready_o),
      .host_waddr_i(cell_waddr_i),
      .host_wdata_i(cell_wdata_i)
  );
  assign cell_rdata_o = cell_data;

  // Sequencer.
  logic mat_valid, mat_ready, vec_valid, vec_ready, aux_valid, aux_ready, aux_done, retire_valid;
  mat_job_t mat_job;
  vec_job_t vec_job;
  aux_job_t aux_job;
  thread_e  retire_thread;
  logic max_valid, scan_valid, scan_ready, scan_rank, scan_fuzzy, scan_done, rank_pop, class_re;
  logic [15:0] max_class, scan_temperature, rank_class, class_index;
  logic signed [15:0] max_logit, rank_logit, class_logit;
  logic signed [31:0] lse;

  sequencer u_sequencer (
      .clk_i,
      .rst_i(rst_sequencer_q),
      .header_i(header_q),
      .entry_valid_i,
      .entry_ready_o,
      .entry_i,
      .features_free_o,
      .code_en_o(code_en),
      .code_addr_o(code_addr),
      .code_data_i(code_data),
      .zero_valid_o,
      .zero_act_o,
      .zero_cell_o,
      .zero_done_i,
      .mat_valid_o(mat_valid),
      .mat_ready_i(mat_ready),
      .mat_job_o(mat_job),
      .vec_valid_o(vec_valid),
      .vec_ready_i(vec_ready),
      .vec_job_o(vec_job),
      .retire_valid_i(retire_valid),
      .retire_thread_i(retire_thread),
      .aux_valid_o(aux_valid),
      .aux_ready_i(aux_ready),
      .aux_job_o(aux_job),
      .aux_done_i(aux_done),
      .max_valid_i(max_valid),
      .max_class_i(max_class),
      .max_logit_i(max_logit),
      .scan_valid_o(scan_valid),
      .scan_ready_i(scan_ready),
      .scan_rank_o(scan_rank),
      .scan_fuzzy_o(scan_fuzzy),
      .scan_temperature_o(scan_temperature),
      .scan_done_i(scan_done),
      .lse_i(lse),
      .rank_pop_o(rank_pop),
      .rank_class_i(rank_class),
      .rank_logit_i(rank_logit),
      .class_re_o(class_re),
      .class_o(class_index),
      .class_logit_i(class_logit),
      .result_valid_o,
      .result_ready_i,
      .result_addr_o,
      .result_data_o,
      .done_valid_o,
      .done_ready_i,
      .done_o,
      .waits_o,
      .idle_o,
      .instruction_o
  );

  // Units.
  logic res_valid, res_ready, res_last;
  logic signed [31:0] res_sums[4];
  logic [15:0] res_group, res_quad;
  logic [1:0] res_vector;
  matrix_unit #(
      .Multiplier(Multiplier)
  ) u_matrix (
      .clk_i,
      .rst_i(rst_matrix_q),
      .job_valid_i(mat_valid),
      .job_ready_o(mat_ready),
      .job_i(mat_job),
      .weight_en_o(weight_en),
      .weight_addr_o(weight_addr),
      .weight_data_i(weight_data),
      .act_en_o(matrix_en),
      .act_addr_o(matrix_addr),
      .act_data_i(act_data),
      .res_valid_o(res_valid),
      .res_ready_i(res_ready),
      .res_sums_o(res_sums),
      .res_group_o(res_group),
      .res_vector_o(res_vector),
      .res_quad_o(res_quad),
      .res_last_o(res_last),
      .active_o,
      .blocked_o
  );

  logic logit_valid, logit_last;
  logic [15:0] logit_quad;
  logic signed [15:0] logit_data[4];
  vector_unit #(
      .Rows(Rows),
      .Cols(Cols),
      .SumGroups(SumGroups),
      .ScaleAddrW(ScaleAddrW),
      .BiasAddrW(BiasAddrW),
      .Multiplier(Multiplier)
  ) u_vector (
      .clk_i,
      .rst_i(rst_vector_q),
      .load_valid_i(table_valid),
      .load_addr_i(load_addr_q[15:0]),
      .load_data_i(load_data_q),
      .job_valid_i(vec_valid),
      .job_ready_o(vec_ready),
      .job_i(vec_job),
      .res_valid_i(res_valid),
      .res_ready_o(res_ready),
      .res_sums_i(res_sums),
      .res_group_i(res_group),
      .res_vector_i(res_vector),
      .res_quad_i(res_quad),
      .res_last_i(res_last),
      .scale_en_o(scale_en),
      .scale_addr_o(scale_addr),
      .scale_data_i(scale_data),
      .bias_en_o(bias_en),
      .bias_addr_o(bias_addr),
      .bias_data_i(bias_data),
      .cell_re_o(vector_cell_re),
      .cell_raddr_o(vector_cell_raddr),
      .cell_rdata_i(cell_data),
      .cell_we_o(vector_cell_we),
      .cell_waddr_o(vector_cell_waddr),
      .cell_wdata_o(vector_cell_wdata),
      .cell_wmask_o(vector_cell_wmask),
      .act_we_o(vector_we),
      .act_waddr_o(vector_addr),
      .act_wdata_o(vector_data),
      .act_wmask_o(vector_mask),
      .logit_valid_o(logit_valid),
      .logit_quad_o(logit_quad),
      .logit_data_o(logit_data),
      .logit_last_o(logit_last),
      .retire_valid_o(retire_valid),
      .retire_thread_o(retire_thread)
  );

  aux_unit u_aux (
      .clk_i,
      .rst_i(rst_aux_q),
      .job_valid_i(aux_valid),
      .job_ready_o(aux_ready),
      .job_i(aux_job),
      .done_o(aux_done),
      .embed_en_o(embed_en),
      .embed_addr_o(embed_addr),
      .embed_data_i(embed_data),
      .cell_re_o(aux_cell_re),
      .cell_ready_i(aux_cell_ready),
      .cell_raddr_o(aux_cell_raddr),
      .cell_rdata_i(cell_data),
      .act_we_o(aux_we),
      .act_ready_i(aux_act_ready),
      .act_waddr_o(aux_addr),
      .act_wdata_o(aux_data),
      .act_wmask_o(aux_mask)
  );

  topk_unit #(
      .MaxClasses(MaxClasses)
  ) u_topk (
      .clk_i,
      .rst_i(rst_topk_q),
      .load_valid_i(table_valid),
      .load_addr_i(load_addr_q[15:0]),
      .load_data_i(load_data_q),
      .classes_i(header_q.classes),
      .logit_bits_i(header_q.logit_bits),
      .logit_valid_i(logit_valid),
      .logit_quad_i(logit_quad),
      .logit_data_i(logit_data),
      .logit_last_i(logit_last),
      .max_valid_o(max_valid),
      .max_class_o(max_class),
      .max_logit_o(max_logit),
      .scan_valid_i(scan_valid),
      .scan_ready_o(scan_ready),
      .scan_rank_i(scan_rank),
      .scan_fuzzy_i(scan_fuzzy),
      .scan_temperature_i(scan_temperature),
      .done_o(scan_done),
      .lse_o(lse),
      .rank_pop_i(rank_pop),
      .rank_class_o(rank_class),
      .rank_logit_o(rank_logit),
      .class_re_i(class_re),
      .class_i(class_index),
      .class_logit_o(class_logit)
  );
endmodule
