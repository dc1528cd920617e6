// SPDX-License-Identifier: Apache-2.0
// Sum of a power of two of signed terms, exact, one level of adders a clock: log2(Terms) clocks.
module adder_tree #(
    parameter int unsigned Terms = 8,  // a power of two
    parameter int unsigned Width = 16,  // bits of a term
    parameter int unsigned SumW = Width + $clog2(Terms)  // derived
) (
    input  logic                    clk_i,
    input  logic signed [Width-1:0] terms_i[Terms],
    output logic signed [ SumW-1:0] sum_o            // log2(Terms) clocks later
);
  if (Terms == 1) begin : gen_leaf
    assign sum_o = terms_i[0];
    logic unused;
    assign unused = clk_i;
  end else begin : gen_node
    logic signed [SumW-2:0] low, high;

    adder_tree #(
        .Terms(Terms / 2),
        .Width(Width)
    ) u_low (
        .clk_i,
        .terms_i(terms_i[0:Terms/2-1]),
        .sum_o  (low)
    );
    adder_tree #(
        .Terms(Terms / 2),
        .Width(Width)
    ) u_high (
        .clk_i,
        .terms_i(terms_i[Terms/2:Terms-1]),
        .sum_o  (high)
    );
    always_ff @(posedge clk_i) sum_o <= SumW'(low) + SumW'(high);
  end
endmodule
