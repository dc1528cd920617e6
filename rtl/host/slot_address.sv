// SPDX-License-Identifier: Apache-2.0
// First physical activation unit and cell unit of a slot: base + slot * units, by shift and add.
module slot_address
  import gharial_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    input  logic        start_i,
    input  logic [15:0] slot_i,
    input  logic [15:0] act_base_i,
    input  logic [15:0] act_units_i,
    input  logic [15:0] cell_base_i,
    input  logic [15:0] cell_units_i,
    output logic        busy_o,

    output logic [ ActAddrW-1:0] act_o,
    output logic [CellAddrW-1:0] cell_o
);
  logic [15:0] left_q, act_step_q, cell_step_q;
  assign busy_o = left_q != '0;

  always_ff @(posedge clk_i) begin
    if (left_q[0]) begin
      act_o  <= act_o + act_step_q;
      cell_o <= cell_o + cell_step_q;
    end
    act_step_q <= act_step_q << 1;
    cell_step_q <= cell_step_q << 1;
    left_q <= left_q >> 1;
    if (start_i) begin
      left_q <= slot_i;
      act_o <= act_base_i;
      cell_o <= cell_base_i;
      act_step_q <= act_units_i;
      cell_step_q <= cell_units_i;
    end
    if (rst_i) left_q <= '0;
  end
endmodule
