// SPDX-License-Identifier: Apache-2.0
// Cell states and joint inputs of all slots, int16, by cell unit. Reads: the vector unit always, then the aux unit, then the host block. Writes: the
// vector unit always, then the host block.
module cell_memory
  import gharial_pkg::*;
#(
    parameter int unsigned Rows  = 32,
    parameter int unsigned Units = 1024,
    parameter int unsigned Width = 4 * Rows  // derived: Rows/4 halfwords
) (
    input logic clk_i,

    input  logic                 vector_re_i,
    input  logic [CellAddrW-1:0] vector_raddr_i,
    input  logic                 aux_re_i,
    output logic                 aux_ready_o,
    input  logic [CellAddrW-1:0] aux_raddr_i,
    input  logic                 host_re_i,
    output logic                 host_re_ready_o,
    input  logic [CellAddrW-1:0] host_raddr_i,
    output logic [    Width-1:0] rdata_o,          // two clocks after any; stays until the next read of anybody

    input  logic                 vector_we_i,
    input  logic [CellAddrW-1:0] vector_waddr_i,
    input  logic [    Width-1:0] vector_wdata_i,
    input  logic [   Rows/4-1:0] vector_wmask_i,
    input  logic                 host_we_i,
    output logic                 host_ready_o,
    input  logic [CellAddrW-1:0] host_waddr_i,
    input  logic [    Width-1:0] host_wdata_i
);
  localparam int unsigned AddrW = $clog2(Units);

  logic [CellAddrW-1:0] raddr, waddr;
  logic [Rows/4-1:0] we;

  assign aux_ready_o = !vector_re_i;
  assign host_re_ready_o = !vector_re_i && !aux_re_i;
  assign raddr = vector_re_i ? vector_raddr_i : aux_re_i ? aux_raddr_i : host_raddr_i;
  assign host_ready_o = !vector_we_i;
  assign waddr = vector_we_i ? vector_waddr_i : host_waddr_i;
  assign we = vector_we_i ? vector_wmask_i : {(Rows / 4) {host_we_i}};

  lane_memory #(
      .Lanes(Rows / 4),
      .LaneW(16),
      .Words(Units)
  ) u_memory (
      .clk_i,
      .we_i(we),
      .waddr_i(waddr[AddrW-1:0]),
      .wdata_i(vector_we_i ? vector_wdata_i : host_wdata_i),
      .re_i(vector_re_i || aux_re_i || host_re_i),
      .raddr_i(raddr[AddrW-1:0]),
      .rdata_o
  );

  logic unused;
  assign unused = &{1'b0, waddr, raddr};  // wider than the memory: operands and slots are checked before
endmodule
