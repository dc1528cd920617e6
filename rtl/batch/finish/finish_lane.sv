// SPDX-License-Identifier: Apache-2.0
// Arithmetic of a lane: four rows from accumulators to sums and outputs, the LSTM cell of which they are the gates, and I8.
//
// Clocks count from the one in which a result is taken; nothing waits.
module finish_lane (
    input logic clk_i,
    input logic rst_i,

    // Table space, by words.
    input logic        load_valid_i,
    input logic [15:0] load_addr_i,
    input logic [31:0] load_data_i,

    input  logic signed [31:0] acc_i  [4],  // clock 2
    input  logic        [22:0] scale_i[4],  // clock 2: k in 22:17, m in 16:0
    input  logic        [31:0] start_i[4],  // clock 7: bias or kept sum
    output logic        [31:0] sum_o  [4],  // clock 8
    output logic signed [15:0] y_o    [4],  // clock 10

    // The cell.
    input  logic        [ 3:0] qc_i,  // clock 8
    input  logic        [ 3:0] qh_i,  // clock 8
    input  logic signed [15:0] c_i,   // clock 14
    output logic signed [15:0] c_o,   // clock 21
    output logic signed [ 7:0] h_o,   // within clock 30, to be registered by whom it is for

    // I8.
    input  logic        [3:0] shift_i,     // clock 10
    input  logic        [6:0] high_i,      // clock 10
    input  logic              signed_i,    // clock 10
    output logic signed [7:0] i8_o    [4]  // clock 12
);
  logic [17:0] argument[4];
  logic negative[4];

  for (genvar r = 0; r < 4; r++) begin : gen_row
    logic signed [27:0] product;
    logic round;

    requantise u_requantise (
        .clk_i,
        .acc_i(acc_i[r]),
        .scale_i(scale_i[r]),
        .product_o(product),
        .round_o(round)
    );

    always_ff @(posedge clk_i) sum_o[r] <= start_i[r] + unsigned'(32'(product)) + 32'(round);

    pre_activation u_pre_activation (
        .clk_i,
        .sum_i(signed'(sum_o[r])),
        .argument_o(argument[r]),
        .negative_o(negative[r]),
        .y_o(y_o[r])
    );
  end

  lstm_cell u_cell (
      .clk_i,
      .rst_i,
      .load_valid_i,
      .load_addr_i,
      .load_data_i,
      .argument_i(argument),
      .negative_i(negative),
      .qc_i,
      .qh_i,
      .c_i,
      .c_o,
      .h_o
  );

  int8_output u_int8 (
      .clk_i,
      .y_i(y_o),
      .shift_i,
      .high_i,
      .signed_i,
      .value_o(i8_o)
  );
endmodule
