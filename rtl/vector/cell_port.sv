// SPDX-License-Identifier: Apache-2.0
// The vector unit's side of the cell memory: reads c of a row group once and hands it out unit by unit, writes the new c, and writes
// the outputs of I16 as soon as new c leaves the port free.
//
// Timing: a unit's c is read in the clock of read_valid_i and comes out of c_o four clocks later.
module cell_port
  import gharial_pkg::*;
#(
    parameter int unsigned Rows   = 32,
    parameter int unsigned Halves = Rows / 4,       // derived: halfwords of a cell unit
    parameter int unsigned QuadW  = $clog2(Halves)  // derived
) (
    input logic clk_i,
    input logic rst_i,

    // Cell memory; data two clocks after the address.
    output logic                 cell_re_o,
    output logic [CellAddrW-1:0] cell_raddr_o,
    input  logic [16*Halves-1:0] cell_rdata_i,
    output logic                 cell_we_o,
    output logic [CellAddrW-1:0] cell_waddr_o,
    output logic [16*Halves-1:0] cell_wdata_o,
    output logic [   Halves-1:0] cell_wmask_o,

    // Reading c: units of CELL, in order.
    input  logic                        read_valid_i,
    input  logic        [    QuadW-1:0] read_quad_i,
    input  logic        [CellAddrW-1:0] read_addr_i,
    output logic signed [         15:0] c_o,

    // New c.
    input logic                        new_valid_i,
    input logic        [    QuadW-1:0] new_quad_i,
    input logic        [CellAddrW-1:0] new_addr_i,
    input logic signed [         15:0] new_c_i,

    // Outputs of I16; i16_job_end_i marks the last unit of a job, which may have no output.
    input  logic                        i16_valid_i,
    input  logic                        i16_write_i,
    input  logic                        i16_job_end_i,
    input  logic        [    QuadW-1:0] i16_quad_i,
    input  logic        [CellAddrW-1:0] i16_addr_i,
    input  logic signed [         15:0] i16_data_i   [4],
    output logic                        i16_done_o         // all of a job's outputs are written with this clock
);
  localparam int unsigned Reach = 16;  // new c comes eleven clocks later than I16, so at most eleven outputs wait

  // c
  logic [1:0] fetched_q;
  logic [QuadW-1:0] quad_q[3];
  logic [16*Halves-1:0] held_q;

  assign cell_re_o = read_valid_i && read_quad_i == '0;
  assign cell_raddr_o = read_addr_i;

  always_ff @(posedge clk_i) begin
    fetched_q <= rst_i ? '0 : {fetched_q[0], cell_re_o};
    quad_q[0] <= read_quad_i;
    quad_q[1] <= quad_q[0];
    quad_q[2] <= quad_q[1];
    // Others may read meanwhile, so the word is kept here.
    if (fetched_q[1]) held_q <= cell_rdata_i;
    c_o <= signed'(held_q[16*quad_q[2]+:16]);
  end

  // I16
  logic waiting, write, job_end, room;
  logic [QuadW-1:0] quad;
  logic [CellAddrW-1:0] addr;
  logic [63:0] data;

  small_fifo #(
      .Width(2 + QuadW + CellAddrW + 64),
      .Depth(Reach)
  ) u_i16 (
      .clk_i,
      .rst_i,
      .push_valid_i(i16_valid_i),
      .push_ready_o(room),
      .push_data_i({
        i16_write_i, i16_job_end_i, i16_quad_i, i16_addr_i, i16_data_i[3], i16_data_i[2], i16_data_i[1], i16_data_i[0]
      }),
      .pop_valid_o(waiting),
      .pop_ready_i(!new_valid_i),
      .pop_data_o({write, job_end, quad, addr, data})
  );

  assign i16_done_o = waiting && !new_valid_i && job_end;

  always_comb begin
    cell_we_o = new_valid_i || (waiting && write);
    if (new_valid_i) begin
      cell_waddr_o = new_addr_i;
      cell_wdata_o = {Halves{new_c_i}};
      cell_wmask_o = Halves'(1) << new_quad_i;
    end else begin
      cell_waddr_o = addr;
      cell_wdata_o = {Halves / 4{data}};
      cell_wmask_o = Halves'(4'hf) << {quad & QuadW'(Halves / 4 - 1), 2'b00};
    end
  end

`ifdef FORMAL
  always_ff @(posedge clk_i) begin
    if (!rst_i && i16_valid_i) a_room : assert (room);
  end
`else
  logic unused;
  assign unused = room;
`endif  // FORMAL
endmodule
