// SPDX-License-Identifier: Apache-2.0
// The program on chip: code, weights, scales, biases and embedding, filled by the loader, each read by one unit. Tables live with those who look up.
//
// Addresses are wider than the memories: operands are checked before they are used (instr_check).
module program_memories
  import gharial_pkg::*;
  import gharial_config_pkg::*;
#(
    parameter int unsigned ScaleAddrW = $clog2(ScaleBytes / 16),  // derived
    parameter int unsigned BiasAddrW  = $clog2(BiasBytes / 16)    // derived
) (
    input logic clk_i,

    input  logic          load_valid_i,
    input  space_e        load_space_i,
    input  logic   [26:0] load_addr_i,
    input  logic   [31:0] load_data_i,
    output logic          table_valid_o, // the word belongs to the tables

    // Data two clocks after en, weights three.
    input  logic                            code_en_i,
    input  logic        [             15:0] code_addr_i,       // word
    output logic        [             31:0] code_data_o,
    input  logic                            weight_en_i,
    input  logic        [             23:0] weight_addr_i,     // tile
    output logic        [Rows*Cols*8 - 1:0] weight_data_o,
    input  logic                            scale_en_i,
    input  logic        [   ScaleAddrW-1:0] scale_addr_i,      // unit: four rows
    output logic        [             31:0] scale_data_o [4],
    input  logic                            bias_en_i,
    input  logic        [    BiasAddrW-1:0] bias_addr_i,       // unit: four rows
    output logic signed [             31:0] bias_data_o  [4],
    input  logic                            embed_en_i,
    input  logic        [             31:0] embed_addr_i,      // activation unit
    output logic        [       8*Cols-1:0] embed_data_o
);
  localparam int unsigned CodeWords = CodeBytes / 4;
  localparam int unsigned Tiles = WeightBytes / (Rows * Cols);
  localparam int unsigned ScaleWords = ScaleBytes / 16;
  localparam int unsigned BiasWords = BiasBytes / 16;
  localparam int unsigned EmbedUnits = EmbedBytes / Cols;

  logic [127:0] scale_word, bias_word;

  assign table_valid_o = load_valid_i && load_space_i == SpaceTables;

  loaded_memory #(
      .Width(32),
      .Words(CodeWords)
  ) u_code (
      .clk_i,
      .load_valid_i(load_valid_i && load_space_i == SpaceCode),
      .load_addr_i,
      .load_data_i,
      .re_i(code_en_i),
      .raddr_i(code_addr_i[$clog2(CodeWords)-1:0]),
      .rdata_o(code_data_o)
  );

  weight_memory #(
      .Width (Rows * Cols * 8),
      .Words (Tiles),
      .Groups(Rows / 4)
  ) u_weights (
      .clk_i,
      .load_valid_i(load_valid_i && load_space_i == SpaceWeights),
      .load_addr_i,
      .load_data_i,
      .re_i(weight_en_i),
      .raddr_i(weight_addr_i[$clog2(Tiles)-1:0]),
      .rdata_o(weight_data_o)
  );

  loaded_memory #(
      .Width(128),
      .Words(ScaleWords)
  ) u_scales (
      .clk_i,
      .load_valid_i(load_valid_i && load_space_i == SpaceScales),
      .load_addr_i,
      .load_data_i,
      .re_i(scale_en_i),
      .raddr_i(scale_addr_i),
      .rdata_o(scale_word)
  );

  loaded_memory #(
      .Width(128),
      .Words(BiasWords)
  ) u_biases (
      .clk_i,
      .load_valid_i(load_valid_i && load_space_i == SpaceBiases),
      .load_addr_i,
      .load_data_i,
      .re_i(bias_en_i),
      .raddr_i(bias_addr_i),
      .rdata_o(bias_word)
  );

  loaded_memory #(
      .Width(8 * Cols),
      .Words(EmbedUnits)
  ) u_embedding (
      .clk_i,
      .load_valid_i(load_valid_i && load_space_i == SpaceEmbedding),
      .load_addr_i,
      .load_data_i,
      .re_i(embed_en_i),
      .raddr_i(embed_addr_i[$clog2(EmbedUnits)-1:0]),
      .rdata_o(embed_data_o)
  );

  always_comb begin
    for (int i = 0; i < 4; i++) begin
      scale_data_o[i] = scale_word[32*i+:32];
      bias_data_o[i]  = bias_word[32*i+:32];
    end
  end

  logic unused;
  assign unused = &{1'b0, code_addr_i, weight_addr_i, embed_addr_i};  // above the memories' sizes
endmodule
