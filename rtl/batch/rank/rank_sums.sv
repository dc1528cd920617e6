// SPDX-License-Identifier: Apache-2.0
// Log-sum-exp of the logits that come in chunks (docs/numerics.md, section 8): a lane of terms for each class of a chunk, whose sums are added up
// at the end, and the logarithm.
module rank_sums #(
    parameter int unsigned RankLanes = 4
) (
    input logic clk_i,
    input logic rst_i,

    // Tables: word address within the table space; exp and log are the last two tables.
    input logic        load_valid_i,
    input logic [15:0] load_addr_i,
    input logic [31:0] load_data_i,

    input  logic                        clear_i,
    input  logic        [RankLanes-1:0] valid_i,                   // lane 0 wherever there is any
    input  logic signed [         15:0] logit_i      [RankLanes],
    input  logic signed [         15:0] max_i,
    input  logic        [         15:0] temperature_i,
    input  logic        [          3:0] logit_bits_i,
    output logic                        busy_o,                    // terms are on their way

    input  logic               finish_i,  // one clock, when not busy
    output logic               done_o,    // one clock; lse_o stays
    output logic signed [31:0] lse_o
);
  localparam logic [15:0] FirstWord = 16'd2048;  // sigmoid and tanh lie below
  localparam logic [15:0] EndWord = 16'd2304;
  localparam int unsigned CountW = $clog2(RankLanes + 1);

  // A table entry is two words, base and slope; it is written when the second has come.
  logic [17:0] base_q;
  logic exp_we_q, log_we_q;
  logic [ 5:0] waddr_q;
  logic [35:0] wdata_q;
  always_ff @(posedge clk_i) begin
    if (load_valid_i && !load_addr_i[0]) base_q <= load_data_i[17:0];
    exp_we_q <= load_valid_i && load_addr_i[0] && load_addr_i >= FirstWord && load_addr_i < EndWord && !load_addr_i[7];
    log_we_q <= load_valid_i && load_addr_i[0] && load_addr_i >= FirstWord && load_addr_i < EndWord && load_addr_i[7];
    waddr_q  <= load_addr_i[6:1];
    wdata_q  <= {load_data_i[17:0], base_q};
  end

  logic signed [41:0] lane_sum[RankLanes];
  logic [RankLanes-1:0] lane_busy;
  assign busy_o = lane_busy[0];

  for (genvar lane = 0; lane < int'(RankLanes); lane++) begin : gen_lane
    logic en;
    logic [5:0] index;
    logic [35:0] data;

    lse_terms u_terms (
        .clk_i,
        .rst_i,
        .clear_i,
        .valid_i(valid_i[lane]),
        .logit_i(logit_i[lane]),
        .max_i,
        .temperature_i,
        .logit_bits_i,
        .busy_o(lane_busy[lane]),
        .table_en_o(en),
        .table_index_o(index),
        .table_data_i(data),
        .sum_o(lane_sum[lane])
    );

    ram_1r1w #(
        .Width(36),
        .Words(64)
    ) u_exp (
        .clk_i,
        .we_i(exp_we_q),
        .waddr_i(waddr_q),
        .wdata_i(wdata_q),
        .re_i(en),
        .raddr_i(index),
        .rdata_o(data)
    );
  end

  // Lane after lane.
  logic adding_q, add_q, added_q, log_en;
  logic [CountW-1:0] lane_q;
  logic [5:0] log_index;
  logic [35:0] log_data;
  logic signed [41:0] picked_q, sum_q;

  always_ff @(posedge clk_i) begin
    picked_q <= lane_sum[0];
    for (int lane = 1; lane < int'(RankLanes); lane++) if (lane_q == CountW'(lane)) picked_q <= lane_sum[lane];
    lane_q <= adding_q ? lane_q + CountW'(1) : '0;
    if (finish_i) sum_q <= '0;
    else if (add_q) sum_q <= sum_q + picked_q;
    if (rst_i) begin
      adding_q <= 1'b0;
      add_q <= 1'b0;
      added_q <= 1'b0;
    end else begin
      if (finish_i) adding_q <= 1'b1;
      else if (lane_q == CountW'(RankLanes - 1)) adding_q <= 1'b0;
      add_q   <= adding_q;
      added_q <= add_q && !adding_q;
    end
  end

  lse_finish u_finish (
      .clk_i,
      .rst_i,
      .start_i(added_q),
      .sum_i(sum_q),
      .max_i,
      .temperature_i,
      .logit_bits_i,
      .table_en_o(log_en),
      .table_index_o(log_index),
      .table_data_i(log_data),
      .done_o,
      .lse_o
  );

  ram_1r1w #(
      .Width(36),
      .Words(64)
  ) u_log (
      .clk_i,
      .we_i(log_we_q),
      .waddr_i(waddr_q),
      .wdata_i(wdata_q),
      .re_i(log_en),
      .raddr_i(log_index),
      .rdata_o(log_data)
  );

  logic unused;
  assign unused = &{1'b0, load_data_i[31:18], lane_busy};  // copies of the sign; no lane is busy without the first
endmodule
