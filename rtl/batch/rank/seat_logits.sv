// SPDX-License-Identifier: Apache-2.0
// The logits of all seats: written a word at a time, read in chunks of RankLanes classes.
module seat_logits #(
    parameter int unsigned Seats = 4,
    parameter int unsigned WordLanes = 8,  // logits a word, a power of two
    parameter int unsigned RankLanes = 4,  // logits a chunk, a power of two, at most WordLanes
    parameter int unsigned MaxClasses = 512,
    parameter int unsigned SeatW = (Seats > 1) ? $clog2(Seats) : 1  // derived
) (
    input logic clk_i,
    input logic rst_i,

    input logic        [     15:0] classes_i,
    input logic                    logit_valid_i,
    input logic        [SeatW-1:0] logit_seat_i,
    input logic        [     15:0] logit_slice_i,
    input logic signed [     15:0] logit_data_i [WordLanes],

    // Reading; rseat_i is there a clock before re_i. Data come four clocks after it, and stay until the next read's.
    input  logic        [    SeatW-1:0] rseat_i,
    input  logic                        re_i,
    input  logic        [         15:0] rchunk_i,
    output logic                        valid_o,             // one clock
    output logic        [         15:0] chunk_o,
    output logic        [RankLanes-1:0] there_o,             // is a class
    output logic signed [         15:0] logit_o [RankLanes]  // 0 where there is no class
);
  localparam int unsigned Parts = WordLanes / RankLanes;
  localparam int unsigned PartW = $clog2(Parts);
  localparam int unsigned LaneW = $clog2(RankLanes);
  localparam int unsigned SeatWords = (MaxClasses + WordLanes - 1) / WordLanes;
  localparam int unsigned AddrW = $clog2(Seats * SeatWords);

  if (RankLanes < 2 || RankLanes > WordLanes || RankLanes != 1 << LaneW || WordLanes != RankLanes << PartW) begin : gen_check
    $error("%m: RankLanes and WordLanes must be powers of two, and 2 <= RankLanes <= WordLanes");
  end

  // Words beyond the memory are rows beyond the classes.
  logic we_q;
  logic [AddrW-1:0] waddr_q;
  logic [16*WordLanes-1:0] wdata_q;

  always_ff @(posedge clk_i) begin
    we_q <= logit_valid_i && 32'(logit_slice_i) < SeatWords && !rst_i;
    waddr_q <= AddrW'(logit_seat_i) * AddrW'(SeatWords) + AddrW'(logit_slice_i);
    for (int lane = 0; lane < int'(WordLanes); lane++) wdata_q[16*lane+:16] <= logit_data_i[lane];
  end

  logic [3:0] re_q;
  logic [AddrW-1:0] base_q, raddr_q;
  logic [15:0] chunk_q[4];
  logic [16*WordLanes-1:0] word;
  logic [16*RankLanes-1:0] part;

  ram_1r1w #(
      .Width(16 * WordLanes),
      .Words(Seats * SeatWords),
      .Style((Seats * SeatWords >= seat_pkg::UltraWords) ? "ultra" : "block")
  ) u_ram (
      .clk_i,
      .we_i(we_q),
      .waddr_i(waddr_q),
      .wdata_i(wdata_q),
      .re_i(re_q[0]),
      .raddr_i(raddr_q),
      .rdata_o(word)
  );

  if (Parts > 1) begin : gen_parts
    always_comb begin
      part = word[16*RankLanes-1:0];
      for (int p = 1; p < int'(Parts); p++) begin
        if (chunk_q[2][PartW-1:0] == PartW'(p)) part = word[16*RankLanes*p+:16*RankLanes];
      end
    end
  end else begin : gen_whole
    assign part = word;
  end

  logic [ 15:LaneW] whole;  // chunks
  logic [LaneW-1:0] rest;  // classes of the chunk after them
  assign {whole, rest} = classes_i;

  logic [RankLanes-1:0] there;
  always_comb begin
    for (int lane = 0; lane < int'(RankLanes); lane++) begin
      there[lane] = chunk_q[2] < 16'(whole) || (chunk_q[2] == 16'(whole) && LaneW'(lane) < rest);
    end
  end

  always_ff @(posedge clk_i) begin
    base_q  <= AddrW'(rseat_i) * AddrW'(SeatWords);
    raddr_q <= base_q + AddrW'(rchunk_i >> PartW);
    // The chunk's number stays, as the data do.
    if (re_i) chunk_q[0] <= rchunk_i;
    for (int i = 1; i < 4; i++) chunk_q[i] <= chunk_q[i-1];
    there_o <= there;
    for (int lane = 0; lane < int'(RankLanes); lane++) logit_o[lane] <= there[lane] ? part[16*lane+:16] : '0;
    re_q <= rst_i ? '0 : {re_q[2:0], re_i};
  end
  assign valid_o = re_q[3];
  assign chunk_o = chunk_q[3];
endmodule
