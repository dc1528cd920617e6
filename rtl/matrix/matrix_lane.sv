// SPDX-License-Identifier: Apache-2.0
// Four rows of the array: products with the activations that all rows share, their sums over the columns, an accumulator a vector, and the rows' part of the
// result memory. A step's sum meets its controls 5 + log2(Cols) clocks after weights and activations.
module matrix_lane #(
    parameter int unsigned Cols = 8,  // a power of two
    parameter int unsigned MaxVectors = 4,
    parameter int unsigned ResultWords = 16,
    parameter string Multiplier = "GENERIC",
    parameter int unsigned VectorW = $clog2(MaxVectors),  // derived
    parameter int unsigned ResultAddrW = $clog2(ResultWords)  // derived
) (
    input logic clk_i,

    // Operands of a step.
    input logic signed [7:0] weights_i[4][Cols],
    input logic signed [7:0] acts_i[Cols],

    // Controls of the step whose sums are due.
    input logic                   step_i,
    input logic                   step_first_i,   // of its group: the accumulator starts anew
    input logic                   step_last_i,    // the accumulator goes to the result memory
    input logic [    VectorW-1:0] step_vector_i,
    input logic [ResultAddrW-1:0] step_result_i,  // where to

    // Result memory; data in the same clock.
    input  logic        [ResultAddrW-1:0] raddr_i,
    output logic signed [           31:0] rsums_o[4]
);
  localparam int unsigned ProductW = 15;  // no weight is -128
  localparam int unsigned SumW = ProductW + $clog2(Cols);

  logic signed [ProductW-1:0] products[4][Cols];
  for (genvar p = 0; p < 2; p++) begin : gen_pair
    for (genvar c = 0; c < Cols; c++) begin : gen_col
      logic signed [15:0] p0, p1;
      mul2x8 #(
          .Multiplier(Multiplier)
      ) u_mul (
          .clk_i,
          .w0_i(weights_i[2*p][c]),
          .w1_i(weights_i[2*p+1][c]),
          .x_i (acts_i[c]),
          .p0_o(p0),
          .p1_o(p1)
      );
      assign products[2*p][c]   = p0[ProductW-1:0];
      assign products[2*p+1][c] = p1[ProductW-1:0];

      logic unused;
      assign unused = &{1'b0, p0[15], p1[15]};
    end
  end

  for (genvar r = 0; r < 4; r++) begin : gen_row
    logic signed [SumW-1:0] sum;
    logic signed [31:0] held, total;

    adder_tree #(
        .Terms(Cols),
        .Width(ProductW)
    ) u_tree (
        .clk_i,
        .terms_i(products[r]),
        .sum_o  (sum)
    );

    // Read, added to and written within one clock: a vector's next step may follow at once.
    lut_ram #(
        .Width(32),
        .Words(MaxVectors)
    ) u_accumulators (
        .clk_i,
        .we_i   (step_i),
        .waddr_i(step_vector_i),
        .wdata_i(total),
        .raddr_i(step_vector_i),
        .rdata_o(held)
    );
    assign total = (step_first_i ? '0 : held) + 32'(sum);

    lut_ram #(
        .Width(32),
        .Words(ResultWords)
    ) u_results (
        .clk_i,
        .we_i   (step_i && step_last_i),
        .waddr_i(step_result_i),
        .wdata_i(total),
        .raddr_i,
        .rdata_o(rsums_o[r])
    );
  end
endmodule
