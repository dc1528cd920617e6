// SPDX-License-Identifier: Apache-2.0
// Terms of the log-sum-exp, one class a clock, and their sum: 2^-(d * T * log2 e) in Q0.24 (docs/numerics.md, section 8).
//
// The products are shifts and adds, so that no multiplier of the device is taken. A term is in the sum fourteen clocks after its logit.
module lse_terms (
    input logic clk_i,
    input logic rst_i,

    input  logic               clear_i,        // sum to zero; before the first logit
    input  logic               valid_i,
    input  logic signed [15:0] logit_i,
    input  logic signed [15:0] max_i,
    input  logic        [15:0] temperature_i,  // T, Q2.14
    input  logic        [ 3:0] logit_bits_i,   // e, 4..12
    output logic               busy_o,         // a term is on its way

    // Table of 2^-x; data two clocks after the index.
    output logic        table_en_o,
    output logic [ 5:0] table_index_o,
    input  logic [35:0] table_data_i,   // base in 17:0, slope in 35:18

    output logic signed [41:0] sum_o
);
  // log2(e) * 2^15 = 47274 = 2 * 85 + 2048 * 23, and 85 = 5 * 17, 23 = 3 * 8 - 1.

  function automatic logic [19:0] by_nibble(input logic [15:0] a, input logic [3:0] b);
    logic [19:0] wide;
    wide = 20'(a);
    return ((b[0] ? wide : '0) + (b[1] ? wide << 1 : '0)) + ((b[2] ? wide << 2 : '0) + (b[3] ? wide << 3 : '0));
  endfunction

  function automatic logic signed [21:0] by_three(input logic signed [17:0] a, input logic [2:0] b);
    logic signed [21:0] wide;
    wide = 22'(a);
    return (b[0] ? wide : '0) + (b[1] ? wide <<< 1 : '0) + (b[2] ? wide <<< 2 : '0);
  endfunction

  // Stages 1 to 5: d, d * T by nibbles of T, rounded to 2^-12 nat.
  logic [15:0] d_q;
  logic [19:0] part_q[4];
  logic [31:0] product_q;
  logic [32:0] rounded_q;
  logic [26:0] p_q;
  // Stages 6 to 8: times log2(e), with the half that rounds.
  logic [26:0] p6_q;
  logic [29:0] p5_q;
  logic [28:0] p3_q;
  logic [33:0] p85_q;
  logic [32:0] p23_q;
  logic [43:0] octaves_q;  // 2^-27 octave
  // Stages 9 to 12: table, interpolation.
  logic [4:0] n_q[4];
  logic zero_q[4];
  logic [5:0] g_q[2];
  logic signed [21:0] low_q, high_q;
  logic [17:0] base_q;
  logic signed [26:0] v_q;
  // Stage 13: the term.
  logic signed [27:0] term_q;
  logic [12:0] valid_q;

  logic [28:0] q;  // 2^-12 octave
  assign q = octaves_q[43:15];
  assign table_en_o = valid_q[7];
  assign table_index_o = q[11:6];
  assign busy_o = valid_i || (valid_q != '0);

  always_ff @(posedge clk_i) begin
    d_q <= 16'(17'(max_i) - 17'(logit_i));
    for (int i = 0; i < 4; i++) part_q[i] <= by_nibble(d_q, temperature_i[4*i+:4]);
    product_q <= (32'(part_q[0]) + (32'(part_q[1]) << 4)) + ((32'(part_q[2]) << 8) + (32'(part_q[3]) << 12));
    rounded_q <= 33'(product_q) + (33'd2 << logit_bits_i);
    p_q <= 27'(rounded_q >> (5'(logit_bits_i) + 5'd2));

    p6_q <= p_q;
    p5_q <= 30'(p_q) + (30'(p_q) << 2);
    p3_q <= 29'(p_q) + (29'(p_q) << 1);
    p85_q <= 34'(p5_q) + (34'(p5_q) << 4);
    p23_q <= (33'(p3_q) << 3) - 33'(p6_q);
    octaves_q <= ((44'(p23_q) << 11) + (44'(p85_q) << 1)) + 44'h4000;

    n_q[0] <= q[16:12];
    zero_q[0] <= q[28:12] >= 17'd25;
    g_q[0] <= q[5:0];
    g_q[1] <= g_q[0];
    for (int i = 1; i < 4; i++) begin
      n_q[i] <= n_q[i-1];
      zero_q[i] <= zero_q[i-1];
    end
    base_q <= table_data_i[17:0];
    low_q <= by_three(signed'(table_data_i[35:18]), g_q[1][2:0]);
    high_q <= by_three(signed'(table_data_i[35:18]), g_q[1][5:3]);
    v_q <= signed'({3'b000, base_q, 6'b0}) + (27'(low_q) + (27'(high_q) <<< 3));
    term_q <= zero_q[3] ? 28'sd0 : (signed'({v_q, 1'b0}) >>> n_q[3]);

    if (clear_i) sum_o <= '0;
    else if (valid_q[12]) sum_o <= sum_o + 42'(term_q);

    if (rst_i) valid_q <= '0;
    else valid_q <= {valid_q[11:0], valid_i};
  end

  logic unused;
  assign unused = &{1'b0, octaves_q[14:0]};  // below the rounding bit
endmodule
