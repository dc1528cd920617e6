// SPDX-License-Identifier: Apache-2.0
// The memories that are more than a RAM, small: loaded ones of several widths behind one loader, weights, activations, cells.
module memories_bench
  import gharial_pkg::*;
#(
    parameter int unsigned Bytes = 1024,  // of each loaded memory
    parameter int unsigned Rows  = 16,
    parameter int unsigned Cols  = 8,     // two lanes a unit
    parameter int unsigned Units = 32
) (
    input logic clk_i,

    input  logic         load_valid_i,
    input  logic [ 26:0] load_addr_i,
    input  logic [ 31:0] load_data_i,
    input  logic         read_i,
    input  logic [  7:0] read_addr_i,
    output logic [ 31:0] narrow_o,
    output logic [127:0] middle_o,
    output logic [511:0] wide_o,
    output logic [511:0] spread_o,

    input  logic                matrix_en_i,
    input  logic [ActAddrW-1:0] matrix_addr_i,
    input  logic                host_re_i,
    output logic                host_re_ready_o,
    input  logic [ActAddrW-1:0] host_raddr_i,
    output logic [  8*Cols-1:0] act_rdata_o,
    input  logic                vector_we_i,
    input  logic [ActAddrW-1:0] vector_addr_i,
    input  logic [  8*Cols-1:0] vector_data_i,
    input  logic [    Cols-1:0] vector_mask_i,
    input  logic                aux_we_i,
    output logic                aux_ready_o,
    input  logic [ActAddrW-1:0] aux_addr_i,
    input  logic [  8*Cols-1:0] aux_data_i,
    input  logic [    Cols-1:0] aux_mask_i,
    input  logic                host_we_i,
    output logic                host_ready_o,
    input  logic [ActAddrW-1:0] host_addr_i,
    input  logic [  8*Cols-1:0] host_data_i,

    input  logic                 cell_vector_re_i,
    input  logic [CellAddrW-1:0] cell_vector_raddr_i,
    input  logic                 cell_aux_re_i,
    output logic                 cell_aux_ready_o,
    input  logic [CellAddrW-1:0] cell_aux_raddr_i,
    input  logic                 cell_host_re_i,
    output logic                 cell_host_re_ready_o,
    input  logic [CellAddrW-1:0] cell_host_raddr_i,
    output logic [   4*Rows-1:0] cell_rdata_o,
    input  logic                 cell_vector_we_i,
    input  logic [CellAddrW-1:0] cell_vector_waddr_i,
    input  logic [   4*Rows-1:0] cell_vector_wdata_i,
    input  logic [   Rows/4-1:0] cell_vector_wmask_i,
    input  logic                 cell_host_we_i,
    output logic                 cell_host_ready_o,
    input  logic [CellAddrW-1:0] cell_host_waddr_i,
    input  logic [   4*Rows-1:0] cell_host_wdata_i
);
  loaded_memory #(
      .Width(32),
      .Words(Bytes / 4)
  ) u_narrow (
      .clk_i,
      .load_valid_i,
      .load_addr_i,
      .load_data_i,
      .re_i(read_i),
      .raddr_i(read_addr_i),
      .rdata_o(narrow_o)
  );
  loaded_memory #(
      .Width(128),
      .Words(Bytes / 16)
  ) u_middle (
      .clk_i,
      .load_valid_i,
      .load_addr_i,
      .load_data_i,
      .re_i(read_i),
      .raddr_i(read_addr_i[5:0]),
      .rdata_o(middle_o)
  );
  loaded_memory #(
      .Width(512),
      .Words(Bytes / 64)
  ) u_wide (
      .clk_i,
      .load_valid_i,
      .load_addr_i,
      .load_data_i,
      .re_i(read_i),
      .raddr_i(read_addr_i[3:0]),
      .rdata_o(wide_o)
  );
  weight_memory #(
      .Width (512),
      .Words (Bytes / 64),
      .Groups(4)
  ) u_spread (
      .clk_i,
      .load_valid_i,
      .load_addr_i,
      .load_data_i,
      .re_i(read_i),
      .raddr_i(read_addr_i[3:0]),
      .rdata_o(spread_o)
  );

  activation_memory #(
      .Rows (Rows),
      .Cols (Cols),
      .Units(Units)
  ) u_activations (
      .clk_i,
      .matrix_en_i,
      .matrix_addr_i,
      .host_re_i,
      .host_re_ready_o,
      .host_raddr_i,
      .rdata_o(act_rdata_o),
      .vector_we_i,
      .vector_addr_i,
      .vector_data_i,
      .vector_mask_i,
      .aux_we_i,
      .aux_ready_o,
      .aux_addr_i,
      .aux_data_i,
      .aux_mask_i,
      .host_we_i,
      .host_ready_o,
      .host_addr_i,
      .host_data_i
  );

  cell_memory #(
      .Rows (Rows),
      .Units(Units)
  ) u_cells (
      .clk_i,
      .vector_re_i(cell_vector_re_i),
      .vector_raddr_i(cell_vector_raddr_i),
      .aux_re_i(cell_aux_re_i),
      .aux_ready_o(cell_aux_ready_o),
      .aux_raddr_i(cell_aux_raddr_i),
      .host_re_i(cell_host_re_i),
      .host_re_ready_o(cell_host_re_ready_o),
      .host_raddr_i(cell_host_raddr_i),
      .rdata_o(cell_rdata_o),
      .vector_we_i(cell_vector_we_i),
      .vector_waddr_i(cell_vector_waddr_i),
      .vector_wdata_i(cell_vector_wdata_i),
      .vector_wmask_i(cell_vector_wmask_i),
      .host_we_i(cell_host_we_i),
      .host_ready_o(cell_host_ready_o),
      .host_waddr_i(cell_host_waddr_i),
      .host_wdata_i(cell_host_wdata_i)
  );
endmodule
