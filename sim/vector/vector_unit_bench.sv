// SPDX-License-Identifier: Apache-2.0
// The vector unit between its memories. Scales, biases and cells are written through a port; what the unit writes comes out as records,
// and one bit tells whether a clock has any, so that a bench need look at nothing else.
module vector_unit_bench
  import gharial_pkg::*;
#(
    parameter string Multiplier = "GENERIC",
    parameter int unsigned Rows = gharial_config_pkg::Rows,
    parameter int unsigned Cols = gharial_config_pkg::Cols,
    parameter int unsigned CellUnits = 65536,
    parameter int unsigned CellW = 4 * Rows,  // derived
    parameter int unsigned PokeW = (CellW > 128) ? CellW : 128  // derived
) (
    input logic clk_i,
    input logic rst_i,

    input logic        load_valid_i,
    input logic [15:0] load_addr_i,
    input logic [31:0] load_data_i,

    input logic             poke_scale_i,
    input logic             poke_bias_i,
    input logic             poke_cell_i,
    input logic [     15:0] poke_addr_i,
    input logic [PokeW-1:0] poke_data_i,

    input  logic     job_valid_i,
    output logic     job_ready_o,
    input  vec_job_t job_i,

    input  logic         res_valid_i,
    output logic         res_ready_o,
    input  logic [162:0] res_i,        // last, quad, vector, group, sums

    output logic                        event_o,  // any of the valids below
    output logic [     1+16+9*Cols-1:0] act_o,    // valid, address, mask, data
    output logic [1+16+17*(Rows/4)-1:0] cell_o,   // likewise
    output logic [       1+1+16+64-1:0] logit_o,  // valid, last, quad, data
    output logic [                 1:0] retire_o  // valid, thread
);
  localparam int unsigned ScaleAddrW = $clog2(gharial_config_pkg::ScaleBytes / 16);
  localparam int unsigned BiasAddrW = $clog2(gharial_config_pkg::BiasBytes / 16);

  logic scale_en, bias_en, cell_re, cell_we, act_we, logit_valid, logit_last, retire_valid;
  logic [ScaleAddrW-1:0] scale_addr;
  logic [ BiasAddrW-1:0] bias_addr;
  logic [CellAddrW-1:0] cell_raddr, cell_waddr;
  logic [ActAddrW-1:0] act_waddr;
  logic [CellW-1:0] cell_rdata, cell_wdata;
  logic [Rows/4-1:0] cell_wmask;
  logic [8*Cols-1:0] act_wdata;
  logic [  Cols-1:0] act_wmask;
  logic [127:0] scale_word, bias_word;
  logic signed [31:0] res_sums[4], bias_data[4];
  logic [31:0] scale_data[4];
  logic signed [15:0] logit_data[4];
  logic [15:0] logit_quad;
  thread_e retire_thread;
  logic [1:0] unused_ready;
  logic unused_host;

  for (genvar r = 0; r < 4; r++) begin : gen_row
    assign res_sums[r]   = signed'(res_i[32*r+:32]);
    assign scale_data[r] = scale_word[32*r+:32];
    assign bias_data[r]  = signed'(bias_word[32*r+:32]);
  end

  vector_unit #(
      .Multiplier(Multiplier)
  ) u_dut (
      .clk_i,
      .rst_i,
      .load_valid_i,
      .load_addr_i,
      .load_data_i,
      .job_valid_i,
      .job_ready_o,
      .job_i,
      .res_valid_i,
      .res_ready_o,
      .res_sums_i(res_sums),
      .res_group_i(res_i[143:128]),
      .res_vector_i(res_i[145:144]),
      .res_quad_i(res_i[161:146]),
      .res_last_i(res_i[162]),
      .scale_en_o(scale_en),
      .scale_addr_o(scale_addr),
      .scale_data_i(scale_data),
      .bias_en_o(bias_en),
      .bias_addr_o(bias_addr),
      .bias_data_i(bias_data),
      .cell_re_o(cell_re),
      .cell_raddr_o(cell_raddr),
      .cell_rdata_i(cell_rdata),
      .cell_we_o(cell_we),
      .cell_waddr_o(cell_waddr),
      .cell_wdata_o(cell_wdata),
      .cell_wmask_o(cell_wmask),
      .act_we_o(act_we),
      .act_waddr_o(act_waddr),
      .act_wdata_o(act_wdata),
      .act_wmask_o(act_wmask),
      .logit_valid_o(logit_valid),
      .logit_quad_o(logit_quad),
      .logit_data_o(logit_data),
      .logit_last_o(logit_last),
      .retire_valid_o(retire_valid),
      .retire_thread_o(retire_thread)
  );

  ram_1r1w #(
      .Width(128),
      .Words(1 << ScaleAddrW)
  ) u_scales (
      .clk_i,
      .we_i(poke_scale_i),
      .waddr_i(poke_addr_i[ScaleAddrW-1:0]),
      .wdata_i(poke_data_i[127:0]),
      .re_i(scale_en),
      .raddr_i(scale_addr),
      .rdata_o(scale_word)
  );

  ram_1r1w #(
      .Width(128),
      .Words(1 << BiasAddrW)
  ) u_biases (
      .clk_i,
      .we_i(poke_bias_i),
      .waddr_i(poke_addr_i[BiasAddrW-1:0]),
      .wdata_i(poke_data_i[127:0]),
      .re_i(bias_en),
      .raddr_i(bias_addr),
      .rdata_o(bias_word)
  );

  // Whenever the port is free, another reader takes it, as the rest of the machine may.
  logic [CellAddrW-1:0] other_q;
  always_ff @(posedge clk_i) other_q <= rst_i ? '0 : other_q + 16'd37;

  cell_memory #(
      .Rows (Rows),
      .Units(CellUnits)
  ) u_cells (
      .clk_i,
      .vector_re_i(cell_re),
      .vector_raddr_i(cell_raddr),
      .aux_re_i(1'b1),
      .aux_ready_o(unused_ready[0]),
      .aux_raddr_i(other_q),
      .host_re_i(1'b0),
      .host_re_ready_o(unused_ready[1]),
      .host_raddr_i('0),
      .rdata_o(cell_rdata),
      .vector_we_i(cell_we),
      .vector_waddr_i(cell_waddr),
      .vector_wdata_i(cell_wdata),
      .vector_wmask_i(cell_wmask),
      .host_we_i(poke_cell_i),
      .host_ready_o(unused_host),
      .host_waddr_i(poke_addr_i),
      .host_wdata_i(poke_data_i[CellW-1:0])
  );

  assign event_o  = act_we || cell_we || logit_valid || retire_valid;
  assign act_o    = {act_we, act_waddr, act_wmask, act_wdata};
  assign cell_o   = {cell_we, cell_waddr, cell_wmask, cell_wdata};
  assign logit_o  = {logit_valid, logit_last, logit_quad, logit_data[3], logit_data[2], logit_data[1], logit_data[0]};
  assign retire_o = {retire_valid, retire_thread};

  logic unused;
  assign unused = &{1'b0, unused_ready, unused_host};
endmodule
