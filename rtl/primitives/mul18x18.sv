// SPDX-License-Identifier: Apache-2.0
// Signed 18 x 18 multiplier with registers at its inputs, within, and at its output: the product comes three clocks after
// the operands, one a clock. On ECP5 the registers are those of the multiplier block, which synthesis does not pack by itself.
module mul18x18 #(
    parameter string Multiplier = "GENERIC"  // "ECP5": one MULT18X18D; "GENERIC": whatever synthesis infers
) (
    input  logic               clk_i,
    input  logic signed [17:0] a_i,
    input  logic signed [17:0] b_i,
    output logic signed [35:0] p_o     // three clocks later
);
  if (Multiplier == "ECP5") begin : gen_ecp5
    mul18x18_ecp5 u_block (
        .clk_i,
        .a_i,
        .b_i,
        .p_o
    );
  end else if (Multiplier == "GENERIC") begin : gen_generic
    logic signed [17:0] a_q, b_q;
    logic signed [35:0] product_q;
    always_ff @(posedge clk_i) begin
      a_q <= a_i;
      b_q <= b_i;
      product_q <= 36'(a_q) * 36'(b_q);
      p_o <= product_q;
    end
  end else begin : gen_unknown
    $error("%m: Multiplier must be ECP5 or GENERIC");
  end
endmodule
