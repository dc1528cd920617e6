// SPDX-License-Identifier: Apache-2.0
// Activations of the entry at work and of all slots, by activation unit. Reads: the matrix unit always; the host block when that does not read.
// Writes: the vector unit always, then the aux unit, then the host block.
module activation_memory
  import gharial_pkg::*;
#(
    parameter int unsigned Rows  = 32,
    parameter int unsigned Cols  = 8,
    parameter int unsigned Units = 1024
) (
    input logic clk_i,

    input  logic                matrix_en_i,
    input  logic [ActAddrW-1:0] matrix_addr_i,
    input  logic                host_re_i,
    output logic                host_re_ready_o,
    input  logic [ActAddrW-1:0] host_raddr_i,
    output logic [  8*Cols-1:0] rdata_o,          // two clocks after either

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
    input  logic [  8*Cols-1:0] host_data_i
);
  // The vector unit writes R/4 bytes of h a row group at least: lanes of that size, or whole units.
  localparam int unsigned LaneBytes = (Rows / 4 < Cols) ? Rows / 4 : Cols;
  localparam int unsigned Lanes = Cols / LaneBytes;
  localparam int unsigned AddrW = $clog2(Units);

  logic [ Cols-1:0] mask;
  logic [Lanes-1:0] we;
  logic [ActAddrW-1:0] waddr, raddr;
  logic [8*Cols-1:0] wdata;

  assign host_re_ready_o = !matrix_en_i;
  assign raddr = matrix_en_i ? matrix_addr_i : host_raddr_i;
  assign aux_ready_o = !vector_we_i;
  assign host_ready_o = !vector_we_i && !aux_we_i;

  always_comb begin
    if (vector_we_i) {waddr, wdata, mask} = {vector_addr_i, vector_data_i, vector_mask_i};
    else if (aux_we_i) {waddr, wdata, mask} = {aux_addr_i, aux_data_i, aux_mask_i};
    else {waddr, wdata, mask} = {host_addr_i, host_data_i, {Cols{host_we_i}}};
    for (int lane = 0; lane < int'(Lanes); lane++) we[lane] = mask[lane*LaneBytes];
  end

  lane_memory #(
      .Lanes(Lanes),
      .LaneW(8 * LaneBytes),
      .Words(Units)
  ) u_memory (
      .clk_i,
      .we_i(we),
      .waddr_i(waddr[AddrW-1:0]),
      .wdata_i(wdata),
      .re_i(matrix_en_i || host_re_i),
      .raddr_i(raddr[AddrW-1:0]),
      .rdata_o
  );

  logic unused;
  assign unused = &{1'b0, waddr, raddr};  // wider than the memory: operands and slots are checked before
endmodule
