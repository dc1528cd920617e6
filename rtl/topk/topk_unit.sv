// SPDX-License-Identifier: Apache-2.0
// Logits of the last joints, their maximum as they come, and on request one scan: log-sum-exp and the largest k in order.
// Contract: docs/blocks/topk_unit.md. Who asks for a scan lets no third joint write logits before that scan is done.
module topk_unit
  import gharial_pkg::*;
#(
    parameter int unsigned MaxClasses = 512,
    parameter int unsigned Places     = 33    // most of k
) (
    input logic clk_i,
    input logic rst_i,

    // Tables: word address within the table space; exp and log are the last two tables.
    input logic        load_valid_i,
    input logic [15:0] load_addr_i,
    input logic [31:0] load_data_i,

    // Of the program.
    input logic [15:0] classes_i,
    input logic [ 3:0] logit_bits_i,

    // From the vector unit.
    input logic               logit_valid_i,
    input logic        [15:0] logit_quad_i,
    input logic signed [15:0] logit_data_i [4],
    input logic               logit_last_i,

    // The largest logit of a joint.
    output logic               max_valid_o,
    output logic        [15:0] max_class_o,
    output logic signed [15:0] max_logit_o,

    // A scan of the joint whose maximum came last.
    input  logic               scan_valid_i,
    output logic               scan_ready_o,
    input  logic               scan_rank_i,         // the sorter is wanted too
    input  logic               scan_fuzzy_i,        // fuzzy top-k: of replaced logits
    input  logic        [15:0] scan_temperature_i,
    output logic               done_o,
    output logic signed [31:0] lse_o,

    // Reading what was scanned, until the next scan is taken.
    input  logic               rank_pop_i,
    output logic        [15:0] rank_class_o,
    output logic signed [15:0] rank_logit_o,
    input  logic               class_re_i,
    input  logic        [15:0] class_i,
    output logic signed [15:0] class_logit_o  // five clocks after class_re_i
);
  localparam logic [15:0] FirstWord = 16'd2048;  // sigmoid and tanh lie below
  localparam logic [15:0] EndWord = 16'd2304;

  typedef enum logic [2:0] {
    Ready,
    Sift,     // fuzzy: first pass
    Collect,
    Scan,
    Drain,
    Last
  } state_e;

  state_e state_q;
  logic [15:0] class_q, temperature_q;
  logic signed [15:0] max_q, logit, logit_q, value_q, floor;
  logic max_bank, bank_q, rank_q, fuzzy_q, sifting_q, scanning, last, collect, taken, terms_busy, finish, finished;
  logic survives, summed_q, ranked_q;
  logic [4:0] read_valid_q;
  logic [15:0] read_class_q[5];
  logic signed [41:0] sum;

  assign scan_ready_o = state_q == Ready;
  assign taken = scan_valid_i && scan_ready_o;
  assign scanning = state_q == Sift || state_q == Scan;
  assign last = class_q + 16'd1 == classes_i;
  assign collect = state_q == Collect && read_valid_q == '0;
  assign done_o = finished;

  logit_store #(
      .MaxClasses(MaxClasses)
  ) u_store (
      .clk_i,
      .rst_i,
      .logit_valid_i,
      .logit_quad_i,
      .logit_data_i,
      .logit_last_i,
      .classes_i,
      .max_valid_o,
      .max_class_o,
      .max_logit_o,
      .max_bank_o(max_bank),
      .re_i(scanning || class_re_i),
      .rbank_i(bank_q),
      .rclass_i(scanning ? class_q : class_i),
      .rlogit_o(logit)
  );

  logic signed [15:0] lane[1];
  assign lane[0] = logit;

  fuzzy_survivors #(
      .RankLanes (1),
      .MaxClasses(MaxClasses)
  ) u_survivors (
      .clk_i,
      .rst_i,
      .clear_i(taken),
      .valid_i(read_valid_q[2] && sifting_q),
      .chunk_i(read_class_q[2]),
      .logit_i(lane),
      .collect_i(collect),
      .floor_o(floor),
      .re_i(scanning || class_re_i),
      .rchunk_i(scanning ? class_q : class_i),
      .survives_o(survives)
  );

  // The logits that count.
  always_ff @(posedge clk_i) begin
    logit_q  <= logit;
    value_q  <= (fuzzy_q && !survives) ? floor : logit_q;
    summed_q <= read_valid_q[3] && !sifting_q;
    ranked_q <= read_valid_q[3] && !sifting_q && rank_q && (!fuzzy_q || survives);
  end
  assign class_logit_o = value_q;

  always_ff @(posedge clk_i) begin
    read_class_q[0] <= class_q;
    for (int i = 1; i < 5; i++) read_class_q[i] <= read_class_q[i-1];
    if (taken) begin
      bank_q <= max_bank;
      max_q <= max_logit_o;
      rank_q <= scan_rank_i;
      fuzzy_q <= scan_fuzzy_i;
      sifting_q <= scan_fuzzy_i;
      temperature_q <= scan_temperature_i;
      class_q <= '0;
    end else if (scanning) begin
      class_q <= last ? '0 : class_q + 16'd1;
    end
    if (collect) sifting_q <= 1'b0;
    if (rst_i) begin
      state_q <= Ready;
      read_valid_q <= '0;
    end else begin
      read_valid_q <= {read_valid_q[3:0], scanning};
      unique case (state_q)
        Ready: if (scan_valid_i) state_q <= scan_fuzzy_i ? Sift : Scan;
        Sift: if (last) state_q <= Collect;
        Collect: if (collect) state_q <= Scan;
        Scan: if (last) state_q <= Drain;
        Drain: if (finish) state_q <= Last;
        default: if (finished) state_q <= Ready;
      endcase
    end
  end
  assign finish = state_q == Drain && read_valid_q == '0 && !terms_busy;

  // The last candidate is in its place long before lse_finish ends, which takes its 16 clocks for a product and some more.
  rank_sorter #(
      .Places(Places)
  ) u_sorter (
      .clk_i,
      .rst_i,
      .clear_i(taken),
      .valid_i(ranked_q),
      .class_i(read_class_q[4]),
      .logit_i(value_q),
      .pop_i  (rank_pop_i),
      .class_o(rank_class_o),
      .logit_o(rank_logit_o)
  );

  // Terms and finish never read a table in the same clock: the finish starts when the last term is in the sum.
  logic terms_en, finish_en;
  logic [5:0] terms_index, finish_index;
  logic [35:0] table_data;
  logic [17:0] base_q;

  lse_terms u_terms (
      .clk_i,
      .rst_i,
      .clear_i(taken),
      .valid_i(summed_q),
      .logit_i(value_q),
      .max_i(max_q),
      .temperature_i(temperature_q),
      .logit_bits_i,
      .busy_o(terms_busy),
      .table_en_o(terms_en),
      .table_index_o(terms_index),
      .table_data_i(table_data),
      .sum_o(sum)
  );

  lse_finish u_finish (
      .clk_i,
      .rst_i,
      .start_i(finish),
      .sum_i(sum),
      .max_i(max_q),
      .temperature_i(temperature_q),
      .logit_bits_i,
      .table_en_o(finish_en),
      .table_index_o(finish_index),
      .table_data_i(table_data),
      .done_o(finished),
      .lse_o
  );

  // A table entry is two words, base and slope; it is written when the second has come.
  logic table_we_q;
  logic [6:0] table_waddr_q;
  logic [35:0] table_wdata_q;
  always_ff @(posedge clk_i) begin
    if (load_valid_i && !load_addr_i[0]) base_q <= load_data_i[17:0];
    table_we_q <= load_valid_i && load_addr_i[0] && load_addr_i >= FirstWord && load_addr_i < EndWord;
    table_waddr_q <= load_addr_i[7:1];
    table_wdata_q <= {load_data_i[17:0], base_q};
  end

  ram_1r1w #(
      .Width(36),
      .Words(128)
  ) u_tables (
      .clk_i,
      .we_i(table_we_q),
      .waddr_i(table_waddr_q),
      .wdata_i(table_wdata_q),
      .re_i(terms_en || finish_en),
      .raddr_i(terms_en ? {1'b0, terms_index} : {1'b1, finish_index}),
      .rdata_o(table_data)
  );

  logic unused;
  assign unused = &{1'b0, load_data_i[31:18]};  // copies of the sign
endmodule
