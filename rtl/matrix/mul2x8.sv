// SPDX-License-Identifier: Apache-2.0
// Two signed 8-bit products with one operand in common, exact, five clocks after the operands, one pair a clock.
//
// On ECP5 they share one multiplier block: with A = w1 * 2^10 + w0, P = A * x = (w1 * x) * 2^10 + w0 * x. Bits 9:0 of P are w0's product
// already, and bits 15:10 are the sum of w0's upper and w1's lower six. The lower six of w1 * x come from a small product in logic, so the others follow.
// UltraScale+ has wider blocks: mul2x8_dsp48e2.
module mul2x8 #(
    parameter string Multiplier = "GENERIC"  // "ECP5", "DSP48E2" or "GENERIC"
) (
    input  logic               clk_i,
    input  logic signed [ 7:0] w0_i,
    input  logic signed [ 7:0] w1_i,   // not -128: A would not fit in 18 bits
    input  logic signed [ 7:0] x_i,
    output logic signed [15:0] p0_o,   // w0 * x, five clocks later
    output logic signed [15:0] p1_o    // w1 * x
);
  if (Multiplier == "ECP5") begin : gen_shared
    logic [17:0] a;
    logic [35:0] p;
    // x in the block's upper bits: what is below them is constant and takes no wire, a sign above them would.
    assign a = {unsigned'(w1_i) - 8'(w0_i[7]), {2{w0_i[7]}}, unsigned'(w0_i)};

    mul18x18 #(
        .Multiplier(Multiplier)
    ) u_mul (
        .clk_i,
        .a_i(signed'(a)),
        .b_i({x_i, 10'b0}),
        .p_o(p)
    );

    // w1 * x modulo 64, in step with the block's registers: operands, sums of two rows each, product. Both then have a clock for the way from
    // the block, which may be far from the logic.
    logic [5:0] w_q, x_q, product_q, low_q;
    logic [25:0] p_q;
    logic [ 5:0] rows01_q;
    logic [ 3:0] rows23_q;
    logic [ 1:0] rows45_q;
    always_ff @(posedge clk_i) begin
      w_q <= w1_i[5:0];
      x_q <= x_i[5:0];
      rows01_q <= ({6{x_q[0]}} & w_q) + {{5{x_q[1]}} & w_q[4:0], 1'b0};
      rows23_q <= ({4{x_q[2]}} & w_q[3:0]) + {{3{x_q[3]}} & w_q[2:0], 1'b0};
      rows45_q <= ({2{x_q[4]}} & w_q[1:0]) + {x_q[5] & w_q[0], 1'b0};
      product_q <= rows01_q + {rows23_q + {rows45_q, 2'b00}, 2'b00};
      low_q <= product_q;
      p_q <= p[35:10];
    end

    // Upper six bits of w0's product, and whether adding them to low_q carried into bit 16. That carry, less the sign of
    // w0's product, is what P has too much in its upper bits.
    logic borrow;
    logic [5:0] high;
    assign {borrow, high} = {1'b0, p_q[15:10]} - {1'b0, low_q};
    always_ff @(posedge clk_i) begin
      p0_o <= {high, p_q[9:0]};
      p1_o <= {p_q[25:16] + {{9{borrow & ~high[5]}}, borrow ^ high[5]}, low_q};
    end

    logic unused;
    assign unused = &{1'b0, p[9:0]};  // zero
  end else if (Multiplier == "DSP48E2") begin : gen_dsp48e2
    logic signed [7:0] x_q;
    always_ff @(posedge clk_i) x_q <= x_i;

    mul2x8_dsp48e2 u_block (
        .clk_i,
        .load_i(1'b1),
        .w0_i,
        .w1_i,
        .x_i(x_q),
        .p0_o,
        .p1_o
    );
  end else begin : gen_generic
    logic signed [7:0] w0_q, w1_q, x_q;
    logic signed [15:0] p0_q[3], p1_q[3];
    always_ff @(posedge clk_i) begin
      w0_q <= w0_i;
      w1_q <= w1_i;
      x_q <= x_i;
      p0_q[0] <= w0_q * x_q;
      p1_q[0] <= w1_q * x_q;
      p0_q[1:2] <= p0_q[0:1];
      p1_q[1:2] <= p1_q[0:1];
      p0_o <= p0_q[2];
      p1_o <= p1_q[2];
    end
  end
endmodule
