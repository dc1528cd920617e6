// SPDX-License-Identifier: Apache-2.0
// What a slot of the current program consists of, from its header; two clocks behind it.
module seat_layout
  import gharial_pkg::*;
  import seater_pkg::*;
#(
    parameter int unsigned Rows = gharial_config_pkg::Rows,
    parameter int unsigned Cols = gharial_config_pkg::Cols
) (
    input logic clk_i,

    input  header_t header_i,
    output layout_t layout_o
);
  localparam int unsigned CellBytes = Rows / 2;

  logic [31:0] enc_a_bytes_q, pred_a_bytes_q;
  logic [15:0] second_unit_q, upper_unit_q;
  always_ff @(posedge clk_i) begin
    enc_a_bytes_q <= 32'(header_i.enc_a_units) * Cols;
    pred_a_bytes_q <= 32'(header_i.pred_a_units) * Cols;
    second_unit_q <= header_i.joint_enc_unit + header_i.joint_enc_units;
    upper_unit_q <= header_i.joint_enc_unit + (header_i.joint_enc_units << 1);

    layout_o.enc_a_units <= header_i.enc_a_units;
    layout_o.enc_c_units <= header_i.enc_c_units;
    layout_o.enc_lower_units <= header_i.joint_enc_unit;
    layout_o.upper_unit <= upper_unit_q;
    layout_o.enc_upper_units <= header_i.enc_c_units - upper_unit_q;
    layout_o.bank_unit <= header_i.joint_enc_unit;
    layout_o.bank_units <= header_i.joint_enc_units;
    layout_o.bank_bytes[0] <= enc_a_bytes_q + 32'(header_i.joint_enc_unit) * CellBytes;
    layout_o.bank_bytes[1] <= enc_a_bytes_q + 32'(second_unit_q) * CellBytes;
    layout_o.upper_bytes <= enc_a_bytes_q + 32'(upper_unit_q) * CellBytes;
    layout_o.pred_a_units <= header_i.pred_a_units;
    layout_o.pred_c_units <= header_i.pred_c_units;
    layout_o.joint_pred_unit <= header_i.joint_pred_unit;
    layout_o.joint_pred_units <= header_i.joint_pred_units;
    layout_o.joint_pred_bytes <= pred_a_bytes_q + 32'(header_i.joint_pred_unit) * CellBytes;
  end

  logic unused;
  assign unused = &{1'b0, header_i};  // fields of other blocks
endmodule
