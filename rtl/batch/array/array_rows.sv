// SPDX-License-Identifier: Apache-2.0
// Some rows of the array: their weights, products with the activations that all rows share, sums over the columns, an accumulator a seat and vector, and the rows' part
// of the result memory. A step's sums are there 5 + log2(Cols) clocks after its activations.
module array_rows #(
    parameter int unsigned Rows = 4,
    parameter int unsigned Cols = 32,  // a power of two
    parameter int unsigned Accumulators = 32,
    parameter int unsigned ResultWords = 64,
    parameter string Multiplier = "GENERIC",  // "DSP48E2": two rows share a block a column; "GENERIC": for simulation
    parameter int unsigned IndexW = (Accumulators > 1) ? $clog2(Accumulators) : 1,  // derived
    parameter int unsigned ResultAddrW = $clog2(ResultWords)  // derived
) (
    input logic clk_i,

    // Weights: tile_i is taken in the clock after load_i.
    input logic              load_i,
    input logic [8*Cols-1:0] tile_i[Rows],
    input logic [8*Cols-1:0] acts_i,

    // Controls of a step, two clocks before its sums are there.
    input logic              step_i,
    input logic              step_first_i,  // of its sum: the accumulator starts anew
    input logic              step_last_i,   // the sum goes to the result memory
    input logic [IndexW-1:0] step_index_i,

    // Where the sums that are there now go, if it is the last step of theirs.
    input logic [ResultAddrW-1:0] waddr_i,

    // Result memory and the register behind it.
    input  logic                   read_i,
    input  logic [ResultAddrW-1:0] raddr_i,
    output logic [    32*Rows-1:0] rsums_o   // a clock later, until the next read
);
  localparam int unsigned SumW = 15 + $clog2(Cols);  // no weight is -128
  // Multipliers take five clocks, adders one a level: of these the generic model needs two.
  localparam int unsigned Stages = 4 + $clog2(Cols);

  // A function that is called, rows that are gone through in a loop, sums of all rows in one vector: a simulator that unrolled them would take minutes to compile.
  function automatic logic signed [SumW-1:0] dot(input logic [8*Cols-1:0] weights, input logic [8*Cols-1:0] acts);
    // verilator no_inline_task
    logic signed [31:0] sum;
    sum = '0;
    for (int c = 0; c < int'(Cols); c++) sum += 32'(signed'(weights[8*c+:8])) * 32'(signed'(acts[8*c+:8]));
    return SumW'(sum);
  endfunction

  (* keep *) logic load_q;
  (* keep *) logic [8*Cols-1:0] acts_q;
  logic [32*Rows-1:0] sums;
  always_ff @(posedge clk_i) begin
    load_q <= load_i;
    acts_q <= acts_i;
  end

  if (Multiplier == "DSP48E2") begin : gen_dsp48e2
    if (Rows % 2 != 0) begin : gen_check
      $error("%m: two rows share a block");
    end
    for (genvar p = 0; p < int'(Rows / 2); p++) begin : gen_pair
      logic signed [14:0] low[Cols], high[Cols];
      logic signed [SumW-1:0] low_sum, high_sum;
      for (genvar c = 0; c < int'(Cols); c++) begin : gen_col
        logic signed [15:0] p0, p1;
        mul2x8_dsp48e2 u_mul (
            .clk_i,
            .load_i(load_q),
            .w0_i  (signed'(tile_i[2*p][8*c+:8])),
            .w1_i  (signed'(tile_i[2*p+1][8*c+:8])),
            .x_i   (signed'(acts_q[8*c+:8])),
            .p0_o  (p0),
            .p1_o  (p1)
        );
        assign low[c]  = p0[14:0];
        assign high[c] = p1[14:0];

        logic unused;
        assign unused = &{1'b0, p0[15], p1[15]};
      end
      adder_tree #(
          .Terms(Cols),
          .Width(15)
      ) u_low (
          .clk_i,
          .terms_i(low),
          .sum_o  (low_sum)
      );
      adder_tree #(
          .Terms(Cols),
          .Width(15)
      ) u_high (
          .clk_i,
          .terms_i(high),
          .sum_o  (high_sum)
      );
      assign sums[64*p+:32]    = 32'(low_sum);
      assign sums[64*p+32+:32] = 32'(high_sum);
    end
  end else if (Multiplier == "GENERIC") begin : gen_generic
    logic [8*Cols-1:0] weights_q[Rows];
    logic [32*Rows-1:0] dots, dots_q[Stages];

    always_ff @(posedge clk_i) if (load_q) weights_q <= tile_i;
    always_comb begin
      for (int r = 0; r < int'(Rows); r++) dots[32*r+:32] = 32'(dot(weights_q[r], acts_q));
    end
    always_ff @(posedge clk_i) begin
      dots_q[0] <= dots;
      for (int n = 1; n < int'(Stages); n++) dots_q[n] <= dots_q[n-1];
    end
    assign sums = dots_q[Stages-1];
  end else begin : gen_unknown
    $error("%m: Multiplier must be DSP48E2 or GENERIC");
  end

  // Controls of the next step and of this one.
  (* keep *) logic next_q, next_first_q, next_last_q, now_q, now_last_q;
  (* keep *) logic [IndexW-1:0] next_index_q, now_index_q;
  logic bypass;  // the next step goes on with what this one has just summed up
  always_ff @(posedge clk_i) begin
    next_q <= step_i;
    next_first_q <= step_first_i;
    next_last_q <= step_last_i;
    next_index_q <= step_index_i;
    now_q <= next_q;
    now_last_q <= next_last_q;
    now_index_q <= next_index_q;
  end
  assign bypass = now_q && now_index_q == next_index_q;

  // An accumulator is fetched in the clock before it is added to: reading and adding each have their own, and steps of one seat and vector may follow at once.
  logic [32*Rows-1:0] stored, held_q, total, result;
  lut_ram #(
      .Width(32 * Rows),
      .Words(Accumulators)
  ) u_accumulators (
      .clk_i,
      .we_i   (now_q),
      .waddr_i(now_index_q),
      .wdata_i(total),
      .raddr_i(next_index_q),
      .rdata_o(stored)
  );
  always_ff @(posedge clk_i) held_q <= next_first_q ? '0 : bypass ? total : stored;
  always_comb begin
    for (int r = 0; r < int'(Rows); r++) total[32*r+:32] = held_q[32*r+:32] + sums[32*r+:32];
  end

  lut_ram #(
      .Width(32 * Rows),
      .Words(ResultWords)
  ) u_results (
      .clk_i,
      .we_i   (now_q && now_last_q),
      .waddr_i,
      .wdata_i(total),
      .raddr_i,
      .rdata_o(result)
  );
  always_ff @(posedge clk_i) if (read_i) rsums_o <= result;
endmodule
