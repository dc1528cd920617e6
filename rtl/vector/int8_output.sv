// SPDX-License-Identifier: Apache-2.0
// Post-operation I8 of four rows: min(hi, max(lo, rsr(y, s))). Output of clock n gives int8 in clock n + 2.
module int8_output (
    input  logic               clk_i,
    input  logic signed [15:0] y_i     [4],
    input  logic        [ 3:0] shift_i,      // 0..8
    input  logic        [ 6:0] high_i,
    input  logic               signed_i,     // floor is -127, else 0
    output logic signed [ 7:0] value_o [4]
);
  logic signed [16:0] shifted_q[4];  // the lowest bit is the rounding bit
  logic [6:0] high_q;
  logic signed_q;

  always_ff @(posedge clk_i) begin
    high_q   <= high_i;
    signed_q <= signed_i;
  end

  for (genvar r = 0; r < 4; r++) begin : gen_row
    logic signed [15:0] rounded;
    assign rounded = shifted_q[r][16:1] + 16'(shifted_q[r][0]);  // y << 1 is even, so y = 2^15 - 1 does not overflow

    always_ff @(posedge clk_i) begin
      shifted_q[r] <= signed'({y_i[r], 1'b0}) >>> shift_i;
      if (rounded > signed'({9'd0, high_q})) value_o[r] <= signed'({1'b0, high_q});
      else if (rounded < 0 && !signed_q) value_o[r] <= 8'sd0;
      else if (rounded < -16'sd127) value_o[r] <= -8'sd127;
      else value_o[r] <= rounded[7:0];
    end
  end
endmodule
