// SPDX-License-Identifier: Apache-2.0
// From four rows' accumulators to their outputs: requantises, adds to bias or sum, keeps the new sums or hands them on. Holds the memory of sums.
//
// Timing, with the unit's control in clock n: the sum or bias is read in n + 3, the requantised part comes in n + 5, and the new sums are
// there, and written where they are kept, in n + 6. So a sum may be read again by the fourth unit after at the earliest. It is not read
// earlier: a sum recurs once a job, and a job has at least Rows / 4 units.
module sum_stage #(
    parameter string       Multiplier = "GENERIC",        // "ECP5" or "GENERIC"
    parameter int unsigned SumUnits   = 512,              // units of four sums
    parameter int unsigned BiasAddrW  = 9,
    parameter int unsigned SumAddrW   = $clog2(SumUnits)  // derived
) (
    input logic clk_i,
    input logic rst_i,

    // Clock n.
    input logic signed [         31:0] acc_i      [4],
    input logic        [         22:0] scale_i    [4],  // k in 22:17, m in 16:0
    input logic                        valid_i,
    input logic                        fresh_i,         // start at the bias, not at the kept sum
    input logic                        keep_i,
    input logic        [ SumAddrW-1:0] sum_addr_i,
    input logic        [BiasAddrW-1:0] bias_addr_i,

    // Bias memory.
    output logic                        bias_en_o,
    output logic        [BiasAddrW-1:0] bias_addr_o,
    input  logic signed [         31:0] bias_data_i[4],

    // Clock n + 6: arguments of the rows' functions, as magnitude and sign.
    output logic [17:0] argument_o[4],
    output logic        negative_o[4],

    // Clock n + 8: outputs, Q3.12 for gates.
    output logic signed [15:0] y_o[4]
);
  localparam int unsigned ReadAt = 3;
  localparam int unsigned AddAt = 5;
  localparam int unsigned WriteAt = 6;

  logic [WriteAt:1] valid_q;
  logic [SumAddrW-1:0] read_addr, write_addr;
  logic read_fresh, add_fresh, write_keep;

  always_ff @(posedge clk_i) begin
    valid_q <= rst_i ? '0 : {valid_q[WriteAt-1:1], valid_i};
  end

  delay_line #(
      .Width (1 + SumAddrW + BiasAddrW),
      .Clocks(ReadAt)
  ) u_to_read (
      .clk_i,
      .rst_i,
      .data_i({fresh_i, sum_addr_i, bias_addr_i}),
      .data_o({read_fresh, read_addr, bias_addr_o})
  );

  delay_line #(
      .Width (1),
      .Clocks(AddAt - ReadAt)
  ) u_to_add (
      .clk_i,
      .rst_i,
      .data_i(read_fresh),
      .data_o(add_fresh)
  );

  delay_line #(
      .Width (SumAddrW),
      .Clocks(WriteAt - ReadAt)
  ) u_to_write (
      .clk_i,
      .rst_i,
      .data_i(read_addr),
      .data_o(write_addr)
  );

  delay_line #(
      .Width (1),
      .Clocks(WriteAt)
  ) u_keep (
      .clk_i,
      .rst_i,
      .data_i(keep_i),
      .data_o(write_keep)
  );

  logic [127:0] stored, new_sums;

  assign bias_en_o = valid_q[ReadAt] && read_fresh;

  ram_1r1w #(
      .Width(128),
      .Words(SumUnits)
  ) u_sums (
      .clk_i,
      .we_i(valid_q[WriteAt] && write_keep),
      .waddr_i(write_addr),
      .wdata_i(new_sums),
      .re_i(valid_q[ReadAt] && !read_fresh),
      .raddr_i(read_addr),
      .rdata_o(stored)
  );

  for (genvar r = 0; r < 4; r++) begin : gen_row
    logic signed [27:0] product;
    logic round;
    logic [31:0] start, sum_q;

    requantise #(
        .Multiplier(Multiplier)
    ) u_requantise (
        .clk_i,
        .acc_i(acc_i[r]),
        .scale_i(scale_i[r]),
        .product_o(product),
        .round_o(round)
    );

    assign start = add_fresh ? unsigned'(bias_data_i[r]) : stored[32*r+:32];
    always_ff @(posedge clk_i) sum_q <= start + unsigned'(32'(product)) + 32'(round);
    assign new_sums[32*r+:32] = sum_q;

    pre_activation u_pre_activation (
        .clk_i,
        .sum_i(signed'(sum_q)),
        .argument_o(argument_o[r]),
        .negative_o(negative_o[r]),
        .y_o(y_o[r])
    );
  end
endmodule
