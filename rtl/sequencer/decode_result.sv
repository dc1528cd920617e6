// SPDX-License-Identifier: Apache-2.0
// Writes the result of one DECODE entry out of the top-k unit (docs/isa.md, section 5): log-sum-exp, named logits, then the best k or all logits.
module decode_result
  import gharial_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    input  logic               start_i,    // the scan is done
    input  entry_t             entry_i,    // stays until done
    input  logic        [15:0] classes_i,
    input  logic signed [31:0] lse_i,
    output logic               done_o,     // one clock

    output logic               rank_pop_o,
    input  logic        [15:0] rank_class_i,
    input  logic signed [15:0] rank_logit_i,
    output logic               class_re_o,
    output logic        [15:0] class_o,
    input  logic signed [15:0] class_logit_i, // five clocks after class_re_o

    output logic        valid_o,
    input  logic        ready_i,
    output logic [63:0] address_o,
    output logic [31:0] data_o
);
  localparam logic [1:0] ModeAll = 2'd2;

  typedef enum logic [2:0] {
    Idle,
    Head,   // log-sum-exp
    Fetch,  // two logits, named ones or of mode all
    Pair,   // write them
    Count,
    Rank
  } state_e;

  state_e state_q;
  logic [15:0] index_q;  // named pair, class or rank
  logic listing_q;  // past the head: mode all
  logic [63:0] address_q;
  logic [2:0] clock_q;
  logic [15:0] low_q, high_q;

  // The class of each half of a pair, and whether there is one.
  logic [15:0] half_class[2];
  logic half_there[2];
  always_comb begin
    for (int h = 0; h < 2; h++) begin
      if (listing_q) begin
        half_class[h] = {index_q[14:0], 1'(h)};
        half_there[h] = half_class[h] < classes_i;
      end else begin
        half_class[h] = entry_i.named_class[{index_q[0], 1'(h)}];
        half_there[h] = {1'b0, index_q[0], 1'(h)} < entry_i.named;
      end
    end
  end

  assign class_re_o = state_q == Fetch && clock_q < 3'd2;
  assign class_o = half_class[clock_q[0]];
  assign rank_pop_o = state_q == Rank && ready_i;
  assign valid_o = state_q == Head || state_q == Pair || state_q == Count || state_q == Rank;
  assign address_o = address_q;

  always_comb begin
    unique case (state_q)
      Head: data_o = lse_i;
      Pair: data_o = {high_q, low_q};
      Count: data_o = {16'd0, (entry_i.mode == ModeAll) ? classes_i : 16'(entry_i.k)};
      default: data_o = {rank_class_i, rank_logit_i};
    endcase
  end

  always_ff @(posedge clk_i) begin
    done_o  <= 1'b0;
    clock_q <= clock_q + 3'd1;
    if (valid_o && ready_i) address_q <= address_q + 64'd4;

    unique case (state_q)
      Idle: begin
        index_q   <= '0;
        listing_q <= 1'b0;
        address_q <= entry_i.result;
        if (start_i) state_q <= Head;
      end
      Head: begin
        clock_q <= '0;
        if (ready_i) state_q <= Fetch;
      end
      Fetch: begin
        if (clock_q == 3'd5) low_q <= half_there[0] ? class_logit_i : '0;
        if (clock_q == 3'd6) begin
          high_q  <= half_there[1] ? class_logit_i : '0;
          state_q <= Pair;
        end
      end
      Pair: begin
        clock_q <= '0;
        if (ready_i) begin
          index_q <= index_q + 16'd1;
          state_q <= Fetch;
          if (!listing_q && index_q[0]) state_q <= Count;
          if (listing_q && {index_q, 1'b1} >= 17'(classes_i) - 17'd1) begin
            done_o  <= 1'b1;
            state_q <= Idle;
          end
        end
      end
      Count: begin
        clock_q <= '0;
        index_q <= '0;
        if (ready_i) begin
          listing_q <= entry_i.mode == ModeAll;
          state_q   <= (entry_i.mode == ModeAll) ? Fetch : Rank;
        end
      end
      default: begin
        if (ready_i) begin
          index_q <= index_q + 16'd1;
          if (index_q + 16'd1 == 16'(entry_i.k)) begin
            done_o  <= 1'b1;
            state_q <= Idle;
          end
        end
      end
    endcase
    if (rst_i) state_q <= Idle;
  end

  logic unused;
  assign unused = &{1'b0, entry_i};  // fields of other stages
endmodule
