// SPDX-License-Identifier: Apache-2.0
// One row's requantising (docs/numerics.md, section 3): a = sat18(rsr(acc, k)), then a * m, of which the sum takes t = rsr(a * m, 7).
// Accumulator and scale word of clock n give the product in clock n + 5, one a clock.
module requantise #(
    parameter string Multiplier = "GENERIC"  // "ECP5" or "GENERIC"
) (
    input  logic               clk_i,
    input  logic signed [31:0] acc_i,
    input  logic        [22:0] scale_i,    // k in 22:17, -8..23; m in 16:0
    output logic signed [27:0] product_o,  // floor(a * m / 2^7); t is this plus round_o
    output logic               round_o
);
  // {acc, 9 zeros} >> (k + 8) is acc / 2^k with one bit more, the rounding bit. First by whole bytes, then by bits. 26 bits are
  // kept in between: what they cannot hold saturates whatever the second shift is.
  logic sign, coarse_over, coarse_over_q, coarse_sign_q;
  logic [1:0] bytes;
  logic [2:0] fine_q;
  logic [25:0] coarse, coarse_q;
  logic [16:0] m_q[2];

  assign sign  = acc_i[31];
  assign bytes = scale_i[21:20] + 2'd1;  // k = -8: 0, so modulo 4 the upper bits of k plus 1

  always_comb begin
    coarse_over = 1'b0;
    unique case (bytes)
      2'd0: begin
        coarse = {acc_i[16:0], 9'd0};
        coarse_over = acc_i[30:17] != {14{sign}};
      end
      2'd1: begin
        coarse = {acc_i[24:0], 1'b0};
        coarse_over = acc_i[30:25] != {6{sign}};
      end
      2'd2: coarse = {sign, acc_i[31:7]};
      default: coarse = {{9{sign}}, acc_i[31:15]};
    endcase
  end

  logic fine_over, over_q, sign_q;
  logic signed [25:0] fine;
  logic [18:0] fine_value_q;

  assign fine = signed'(coarse_q) >>> fine_q;
  assign fine_over = coarse_over_q || fine[25:18] != {8{coarse_sign_q}};

  always_ff @(posedge clk_i) begin
    coarse_q <= coarse;
    coarse_over_q <= coarse_over;
    coarse_sign_q <= sign;
    fine_q <= scale_i[19:17];
    fine_value_q <= fine[18:0];
    over_q <= fine_over;
    sign_q <= coarse_sign_q;
    m_q[0] <= scale_i[16:0];
    m_q[1] <= m_q[0];
  end

  // Rounding up can leave the range at its upper end only: then a positive number got a sign.
  logic [17:0] rounded, a;
  logic past_end;

  assign rounded  = fine_value_q[18:1] + 18'(fine_value_q[0]);
  assign past_end = !sign_q && rounded[17];
  always_comb begin
    for (int unsigned b = 0; b < 17; b++) a[b] = over_q ? !sign_q : rounded[b] || past_end;
    a[17] = sign_q && (over_q || rounded[17]);
  end

  logic signed [35:0] product;

  mul18x18 #(
      .Multiplier(Multiplier)
  ) u_mul (
      .clk_i,
      .a_i(signed'(a)),
      .b_i(signed'({1'b0, m_q[1]})),
      .p_o(product)
  );

  assign product_o = product[34:7];
  assign round_o   = product[6];

  logic unused;
  assign unused = &{1'b0, scale_i[22], product[35], product[5:0]};  // sign of k; copy of the sign; below the rounding bit
endmodule
