// SPDX-License-Identifier: Apache-2.0
// A row's output y = sat16(rsr(S, 10)) and the argument of its function, |8 * y| limited to 2^18 - 1 (docs/numerics.md, sections 3 and 4).
//
// Both come from one adder: for S < 0, -rsr(S, 10) = rsr(~S, 10), so rounding S with the sign folded in gives |y|.
module pre_activation (
    input  logic               clk_i,
    input  logic signed [31:0] sum_i,
    output logic        [17:0] argument_o,  // same clock
    output logic               negative_o,  // same clock: the argument is -argument_o
    output logic signed [15:0] y_o          // two clocks later
);
  logic sign, over;
  logic [30:0] folded;
  logic [14:0] magnitude;

  assign sign = sum_i[31];
  assign folded = sum_i[30:0] ^ {31{sign}};
  assign magnitude = folded[24:10] + 15'(folded[9]);
  // Beside the adder, not after it: all ones would round to 2^15.
  assign over = folded[30:25] != '0 || folded[24:9] == '1;
  // -2^15 gives 2^18, which is limited to 2^18 - 1; 2^15 - 1 gives 2^18 - 8.
  assign argument_o = {magnitude | {15{over}}, {3{over && sign}}};
  assign negative_o = sign;

  logic over_q, sign_q;
  logic [14:0] magnitude_q;

  always_ff @(posedge clk_i) begin
    over_q <= over;
    sign_q <= sign;
    magnitude_q <= argument_o[17:3];
    // An overflown negative number is ~(2^15 - 1) = -2^15 as it stands.
    y_o <= {sign_q, magnitude_q ^ {15{sign_q}}} + 16'(sign_q && !over_q);
  end

  logic unused;
  assign unused = &{1'b0, folded[8:0]};  // below the rounding bit
endmodule
