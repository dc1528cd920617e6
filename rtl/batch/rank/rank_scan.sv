// SPDX-License-Identifier: Apache-2.0
// Takes a job and goes through its seat's logits: for the fuzzy top-k a first pass that finds the survivors, then the pass that ranks, sums and
// picks out the named ones. Then the results stay until they have been written.
module rank_scan
  import seat_pkg::*;
#(
    parameter int unsigned RankLanes = 4,
    parameter int unsigned MaxClasses = 512,
    parameter int unsigned Places = 33  // most of k
) (
    input logic clk_i,
    input logic rst_i,

    input logic        load_valid_i,
    input logic [15:0] load_addr_i,
    input logic [31:0] load_data_i,
    input logic [15:0] classes_i,
    input logic [ 3:0] logit_bits_i,

    input  logic      job_valid_i,
    output logic      job_ready_o,
    input  rank_job_t job_i,
    output rank_job_t job_o,        // at work
    output logic      scanned_o,    // one clock: the results below are there
    input  logic      written_i,    // one clock: and are not needed any more

    // Of the seat at work.
    input  logic signed [         15:0] max_i,               // two clocks after the job was taken
    output logic                        re_o,
    output logic        [         15:0] rchunk_o,
    input  logic                        valid_i,             // four clocks after re_o
    input  logic        [         15:0] chunk_i,
    input  logic        [RankLanes-1:0] there_i,
    input  logic signed [         15:0] logit_i [RankLanes],

    output logic signed [31:0] lse_o,
    output logic signed [15:0] named_o     [4],
    input  logic               rank_pop_i,
    output logic        [15:0] rank_class_o,
    output logic signed [15:0] rank_logit_o
);
  localparam int unsigned LaneW = $clog2(RankLanes);
  localparam logic [1:0] ModeTopK = 2'd0;
  localparam logic [1:0] ModeFuzzy = 2'd1;

  typedef enum logic [3:0] {
    Ready,
    Look,       // the maximum is looked up
    Sift,       // fuzzy: first pass
    SiftDrain,
    Collect,
    Pass,
    Drain,
    Sum,
    Written
  } state_e;

  state_e state_q;
  rank_job_t job_q;
  logic fuzzy_q, ranks_q, passing_q;
  logic [15:0] chunk_q, last_chunk_q;
  logic signed [15:0] max_q;
  logic [5:0] count_q;
  logic taken, room, list_busy, terms_busy, last, sums_done, finish_q;

  assign job_ready_o = state_q == Ready;
  assign taken = job_valid_i && job_ready_o;
  assign job_o = job_q;
  assign last = chunk_q == last_chunk_q;
  assign re_o = state_q == Sift || (state_q == Pass && room);
  assign rchunk_o = chunk_q;

  // What has been read and is not yet in the list and the terms.
  logic [5:0] way_q;
  assign scanned_o = state_q == Sum && sums_done;

  always_ff @(posedge clk_i) begin
    last_chunk_q <= (classes_i - 16'd1) >> LaneW;
    count_q <= (state_q == Collect || state_q == Look) ? count_q + 6'd1 : '0;
    finish_q <= 1'b0;
    if (taken) begin
      job_q   <= job_i;
      fuzzy_q <= !job_i.greedy && job_i.mode == ModeFuzzy;
      ranks_q <= !job_i.greedy && (job_i.mode == ModeTopK || job_i.mode == ModeFuzzy);
    end
    if (state_q == Look) max_q <= max_i;
    if (re_o) chunk_q <= last ? '0 : chunk_q + 16'd1;

    unique case (state_q)
      Ready: begin
        chunk_q   <= '0;
        passing_q <= 1'b0;
        if (job_valid_i) state_q <= Look;
      end
      Look: begin
        passing_q <= !fuzzy_q;
        if (count_q == 6'd2) state_q <= fuzzy_q ? Sift : Pass;
      end
      Sift: if (last) state_q <= SiftDrain;
      SiftDrain: if (way_q == '0) state_q <= Collect;
      Collect: begin
        passing_q <= 1'b1;
        if (count_q == 6'(RankLanes)) state_q <= Pass;
      end
      Pass: if (room && last) state_q <= Drain;
      Drain: begin
        if (way_q == '0 && !terms_busy && !list_busy) begin
          finish_q  <= 1'b1;
          passing_q <= 1'b0;
          state_q   <= Sum;
        end
      end
      Sum: if (sums_done) state_q <= Written;
      default: if (written_i) state_q <= Ready;
    endcase

    if (rst_i) begin
      state_q <= Ready;
      way_q   <= '0;
    end else begin
      way_q <= {way_q[4:0], re_o};
    end
  end

  // Survivors.
  logic [RankLanes-1:0] survives;
  logic signed [15:0] floor;

  fuzzy_survivors #(
      .RankLanes (RankLanes),
      .MaxClasses(MaxClasses)
  ) u_survivors (
      .clk_i,
      .rst_i,
      .clear_i(state_q == Look),
      .valid_i(valid_i && !passing_q && fuzzy_q),
      .chunk_i,
      .logit_i,
      .collect_i(state_q == Collect),
      .floor_o(floor),
      .re_i(re_o),
      .rchunk_i(rchunk_o),
      .survives_o(survives)
  );

  // The logits that count.
  logic [RankLanes-1:0] there_q, ranked_q;
  logic [15:0] passed_chunk_q;
  logic signed [15:0] logit_q[RankLanes];

  always_ff @(posedge clk_i) begin
    passed_chunk_q <= chunk_i;
    for (int lane = 0; lane < int'(RankLanes); lane++) begin
      there_q[lane]  <= valid_i && passing_q && there_i[lane] && !rst_i;
      ranked_q[lane] <= valid_i && passing_q && there_i[lane] && ranks_q && (!fuzzy_q || survives[lane]) && !rst_i;
      logit_q[lane]  <= (fuzzy_q && !survives[lane]) ? floor : logit_i[lane];
    end
  end

  always_ff @(posedge clk_i) begin
    for (int n = 0; n < 4; n++) begin
      if (taken) begin
        named_o[n] <= '0;
      end else if (there_q[0] && 3'(n) < job_q.named && passed_chunk_q == job_q.named_class[n] >> LaneW) begin
        named_o[n] <= logit_q[job_q.named_class[n][LaneW-1:0]];
      end
    end
  end

  rank_list #(
      .RankLanes(RankLanes),
      .Places(Places)
  ) u_list (
      .clk_i,
      .rst_i,
      .clear_i(state_q == Look),
      .k_i(job_q.k[5:0]),
      .valid_i(there_q[0]),
      .chunk_i(passed_chunk_q),
      .mask_i(ranked_q),
      .logit_i(logit_q),
      .room_o(room),
      .busy_o(list_busy),
      .pop_i(rank_pop_i),
      .class_o(rank_class_o),
      .logit_o(rank_logit_o)
  );

  rank_sums #(
      .RankLanes(RankLanes)
  ) u_sums (
      .clk_i,
      .rst_i,
      .load_valid_i,
      .load_addr_i,
      .load_data_i,
      .clear_i(state_q == Look),
      .valid_i(there_q),
      .logit_i(logit_q),
      .max_i(max_q),
      .temperature_i(job_q.temperature),
      .logit_bits_i,
      .busy_o(terms_busy),
      .finish_i(finish_q),
      .done_o(sums_done),
      .lse_o
  );

  logic unused;
  assign unused = &{1'b0, job_q};  // the writer's fields
endmodule
