// SPDX-License-Identifier: Apache-2.0
// One copy of a function table with its interpolation (docs/numerics.md, section 4): one value a clock, an argument of clock n giving
// the value within clock n + 6, to be registered by whom it is for.
module function_table #(
    parameter string Multiplier = "GENERIC",  // "ECP5" or "GENERIC"
    parameter bit Sigmoid = 1'b0  // f(-u) = 1 - f(u), 1.0 being 2^15; else f(-u) = -f(u)
) (
    input logic clk_i,

    // Table words: slope in 35:18, base in 17:0.
    input logic        we_i,
    input logic [ 8:0] waddr_i,
    input logic [35:0] wdata_i,

    input  logic        [17:0] argument_i,  // magnitude, Q3.15
    input  logic               negative_i,
    output logic signed [16:0] value_o      // six clocks later, Q0.15
);
  // word_q is the register behind the block RAM. The multiplier's own would do, but is too far away on ECP5.
  (* ram_style = "block", no_rw_check *) logic [35:0] mem[512];
  logic [35:0] read_q, word_q;
  logic [17:0] argument_q;
  logic [8:0] rest_q;
  logic [17:0] base_q[3];
  logic [5:1] negative_q;
  logic signed [35:0] product;

  always_ff @(posedge clk_i) begin
    if (we_i) mem[waddr_i] <= wdata_i;
    read_q <= mem[argument_i[17:9]];
    argument_q <= argument_i;
    word_q <= read_q;
    rest_q <= argument_q[8:0];
    base_q[0] <= word_q[17:0];
    base_q[1] <= base_q[0];
    base_q[2] <= base_q[1];
    negative_q <= {negative_q[4:2], negative_q[1] && argument_q != '0, negative_i};  // zero counts as positive
  end

  mul18x18 #(
      .Multiplier(Multiplier)
  ) u_mul (
      .clk_i,
      .a_i(signed'(word_q[35:18])),
      .b_i(signed'({9'd0, rest_q})),
      .p_o(product)
  );

  // line = floor((base * 512 + slope * g) / 2^9) and v = rsr(line, 2): the lower nine bits do not reach the rounding.
  logic signed [19:0] line_q;
  logic negative;

  always_ff @(posedge clk_i) begin
    line_q   <= signed'({2'b00, base_q[2]}) + 20'(signed'(product[26:9]));
    negative <= negative_q[5];
  end

  // For a negative argument -v = rsr(~line, 2). below and above tell where v is limited to 0 and 32767; they come from the line
  // itself, beside the adder.
  logic below, above;
  logic [19:0] folded;
  logic [17:0] rounded;

  assign below   = line_q[19];
  assign above   = !line_q[19] && (line_q[18:17] != '0 || &line_q[16:1]);
  assign folded  = line_q ^ {20{negative}};
  assign rounded = folded[19:2] + 18'(folded[1]);

  always_comb begin
    for (int unsigned b = 1; b < 15; b++) value_o[b] = !below && (above ? !negative : rounded[b]);
    value_o[0] = !below && (above || rounded[0]);
    // -v is negative unless it is 0.
    if (Sigmoid) value_o[16:15] = {1'b0, negative && (below || (!above && !rounded[17]))};
    else value_o[16:15] = {2{negative && !below && (above || rounded[17])}};
  end

  logic unused;
  assign unused = &{1'b0, product[35:27], product[8:0], line_q[0], folded[0], rounded[16:15]};
endmodule
