// SPDX-License-Identifier: Apache-2.0
// Four rows of the array: products with the activations that all rows share, their sums over the columns, an accumulator a vector, and the rows' part of the
// result memory, a ring. A step's sums are there 5 + log2(Cols) clocks after weights and activations.
module matrix_lane #(
    parameter int unsigned Cols = 8,  // a power of two
    parameter int unsigned MaxVectors = 4,
    parameter int unsigned ResultWords = 16,
    parameter string Multiplier = "GENERIC",
    parameter int unsigned VectorW = $clog2(MaxVectors),  // derived
    parameter int unsigned ResultAddrW = $clog2(ResultWords)  // derived
) (
    input logic clk_i,
    input logic rst_i,

    // Operands of a step.
    input logic signed [7:0] weights_i[4][Cols],
    input logic signed [7:0] acts_i[Cols],

    // Controls of a step, two clocks before its sums are there.
    input logic               step_i,
    input logic               step_first_i,  // of its group: the accumulator starts anew
    input logic               step_last_i,   // the accumulator goes to the result memory
    input logic [VectorW-1:0] step_vector_i,

    // Result memory: the oldest sums that have not been taken, two clocks after they were written or the ones before them taken.
    input  logic               taken_i,
    output logic signed [31:0] rsums_o[4]
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

  // Controls of the next step and of this one, each lane its own: one register would have to reach every bit of every row.
  (* keep *) logic next_q, next_first_q, next_last_q, now_q, now_last_q;
  (* keep *) logic [VectorW-1:0] next_vector_q, now_vector_q;
  logic bypass;  // the next step goes on with what this one has just summed up
  always_ff @(posedge clk_i) begin
    next_q <= step_i;
    next_first_q <= step_first_i;
    next_last_q <= step_last_i;
    next_vector_q <= step_vector_i;
    now_q <= next_q;
    now_last_q <= next_last_q;
    now_vector_q <= next_vector_q;
    if (rst_i) {next_q, now_q} <= '0;
  end
  assign bypass = now_q && now_vector_q == next_vector_q;

  // Places of the ring, each lane its own as well.
  (* keep *) logic [ResultAddrW-1:0] waddr_q, raddr_q;
  logic write;
  assign write = now_q && now_last_q;
  always_ff @(posedge clk_i) begin
    if (write) waddr_q <= waddr_q + 1'b1;
    if (taken_i) raddr_q <= raddr_q + 1'b1;
    if (rst_i) {waddr_q, raddr_q} <= '0;
  end

  for (genvar r = 0; r < 4; r++) begin : gen_row
    logic signed [SumW-1:0] sum;
    logic signed [31:0] stored, held_q, total, result;

    adder_tree #(
        .Terms(Cols),
        .Width(ProductW)
    ) u_tree (
        .clk_i,
        .terms_i(products[r]),
        .sum_o  (sum)
    );

    // The accumulator is fetched in the clock before it is added to: reading and adding each have their own, and a vector's
    // steps may follow at once.
    lut_ram #(
        .Width(32),
        .Words(MaxVectors)
    ) u_accumulators (
        .clk_i,
        .we_i   (now_q),
        .waddr_i(now_vector_q),
        .wdata_i(total),
        .raddr_i(next_vector_q),
        .rdata_o(stored)
    );
    always_ff @(posedge clk_i) held_q <= next_first_q ? '0 : bypass ? total : stored;
    assign total = held_q + 32'(sum);

    lut_ram #(
        .Width(32),
        .Words(ResultWords)
    ) u_results (
        .clk_i,
        .we_i   (write),
        .waddr_i(waddr_q),
        .wdata_i(total),
        .raddr_i(raddr_q),
        .rdata_o(result)
    );
    always_ff @(posedge clk_i) rsums_o[r] <= result;
  end
endmodule
