// SPDX-License-Identifier: Apache-2.0
// Every pair of weights and every activation through mul2x8, compared as they come out; weight -128 does not occur in w1.
// It has a clock of its own: half a million clocks are too many to be driven from outside.
module mul2x8_exhaustive #(
    parameter string Multiplier = "ECP5"
) (
    input  logic        rst_i,
    output logic        done_o,
    output logic [31:0] checked_o,
    output logic [31:0] wrong_o,
    output logic [23:0] first_wrong_o  // {w1, w0, x}
);
  localparam int unsigned Lanes = 32;  // activations at once
  localparam int unsigned Latency = 5;

  logic clk;
  initial begin
    clk = 1'b0;
    forever #5ns clk = ~clk;
  end

  logic signed [7:0] w0_q[Latency+1], w1_q[Latency+1];
  logic [2:0] x_high_q[Latency+1];
  logic [Latency:0] valid_q;
  logic last;
  assign last = {w1_q[0], w0_q[0], x_high_q[0]} == {8'sd127, -8'sd1, 3'd7};
  always_ff @(posedge clk) begin
    for (int i = 0; i < Latency; i++) begin
      {w1_q[i+1], w0_q[i+1], x_high_q[i+1]} <= {w1_q[i], w0_q[i], x_high_q[i]};
    end
    if (rst_i) begin
      {w1_q[0], w0_q[0], x_high_q[0]} <= {-8'sd127, 8'sd0, 3'd0};  // counted up as one unsigned number
      valid_q <= (Latency + 1)'(1);
    end else begin
      {w1_q[0], w0_q[0], x_high_q[0]} <= {w1_q[0], w0_q[0], x_high_q[0]} + 1'b1;
      valid_q <= {valid_q[Latency-1:0], valid_q[0] && !last};
    end
    done_o <= !rst_i && valid_q == '0;
  end

  logic [Lanes-1:0] wrong;
  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    logic signed [15:0] p0, p1;
    logic signed [7:0] x;
    assign x = signed'({x_high_q[Latency], 5'(l)});
    mul2x8 #(
        .Multiplier(Multiplier)
    ) u_mul (
        .clk_i(clk),
        .w0_i (w0_q[0]),
        .w1_i (w1_q[0]),
        .x_i  (signed'({x_high_q[0], 5'(l)})),
        .p0_o (p0),
        .p1_o (p1)
    );
    assign wrong[l] = p0 != w0_q[Latency] * x || p1 != w1_q[Latency] * x;
  end

  always_ff @(posedge clk) begin
    if (rst_i) begin
      {checked_o, wrong_o, first_wrong_o} <= '0;
    end else if (valid_q[Latency]) begin
      checked_o <= checked_o + Lanes;
      wrong_o   <= wrong_o + 32'($countones(wrong));
      for (int l = 0; l < Lanes; l++) begin
        if (wrong[l] && wrong_o == '0) first_wrong_o <= {w1_q[Latency], w0_q[Latency], x_high_q[Latency], 5'(l)};
      end
    end
  end
endmodule
