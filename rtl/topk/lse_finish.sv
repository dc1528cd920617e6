// SPDX-License-Identifier: Apache-2.0
// From the sum of terms to the log-sum-exp in 2^-16 nat (docs/numerics.md, section 8): once an entry, so one shift-and-add multiplier does it all,
// in at most 100 clocks.
module lse_finish (
    input logic clk_i,
    input logic rst_i,

    input logic               start_i,
    input logic signed [41:0] sum_i,
    input logic signed [15:0] max_i,
    input logic        [15:0] temperature_i,
    input logic        [ 3:0] logit_bits_i,

    // Table of log2(1 + x); data two clocks after the index.
    output logic        table_en_o,
    output logic [ 5:0] table_index_o,
    input  logic [35:0] table_data_i,

    output logic               done_o,  // one clock; lse_o stays
    output logic signed [31:0] lse_o
);
  localparam logic [15:0] Ln2 = 16'd45426;  // ln 2 * 2^16
  localparam int unsigned Top = 40;  // highest bit that a sum can have

  typedef enum logic [2:0] {
    Idle,
    Normalise,
    Table,
    Interpolate,
    Logarithm,
    Maximum,
    Finish
  } state_e;

  state_e state_q;
  logic [Top:0] mantissa_q;
  logic [5:0] exponent_q;
  logic [1:0] wait_q;

  // The multiplier: acc = acc + a * b, a bit of b a clock; it is done when nothing of b is left.
  logic signed [41:0] a_q, acc_q;
  logic [15:0] b_q;
  logic multiplied_q;

  logic [15:0] z;
  assign z = mantissa_q[Top-1-:16];
  assign table_index_o = z[15:10];
  assign table_en_o = state_q == Table && wait_q == 2'd0;

  // w = rsr(base * 1024 + slope * g, 11), the accumulator having started at base * 1024 + 2^10.
  logic signed [41:0] w, log2_sum;
  assign w = acc_q >>> 11;
  assign log2_sum = ((42'(exponent_q) - 42'sd24) <<< 16) + w;

  logic [3:0] max_shift;
  assign max_shift = logit_bits_i - 4'd2;

  always_ff @(posedge clk_i) begin
    done_o <= 1'b0;
    if (b_q[0]) acc_q <= acc_q + a_q;
    a_q <= a_q <<< 1;
    b_q <= b_q >> 1;
    multiplied_q <= b_q[15:1] == '0;

    unique case (state_q)
      Idle: begin
        mantissa_q <= sum_i[Top:0];
        exponent_q <= 6'(Top);
        wait_q <= '0;
        if (start_i) state_q <= Normalise;
      end
      Normalise: begin
        if (mantissa_q[Top] || exponent_q == '0) begin
          state_q <= Table;
        end else begin
          mantissa_q <= mantissa_q << 1;
          exponent_q <= exponent_q - 6'd1;
        end
      end
      Table: begin
        wait_q <= wait_q + 2'd1;
        if (wait_q == 2'd2) begin
          a_q <= 42'(signed'(table_data_i[35:18]));
          b_q <= {6'b0, z[9:0]};
          multiplied_q <= 1'b0;
          acc_q <= signed'({14'b0, table_data_i[17:0], 10'b0}) + 42'sd1024;
          state_q <= Interpolate;
        end
      end
      Interpolate: begin
        if (multiplied_q) begin
          a_q <= log2_sum;
          b_q <= Ln2;
          multiplied_q <= 1'b0;
          acc_q <= 42'sd32768;
          state_q <= Logarithm;
        end
      end
      Logarithm: begin
        if (multiplied_q) begin
          lse_o <= 32'(acc_q >>> 16);
          a_q <= 42'(max_i);
          b_q <= temperature_i;
          multiplied_q <= 1'b0;
          acc_q <= 42'sd1 <<< (max_shift - 4'd1);
          state_q <= Maximum;
        end
      end
      Maximum: begin
        if (multiplied_q) state_q <= Finish;
      end
      default: begin
        lse_o   <= lse_o + 32'(acc_q >>> max_shift);
        done_o  <= 1'b1;
        state_q <= Idle;
      end
    endcase

    if (rst_i) begin
      state_q <= Idle;
      b_q <= '0;
    end
  end

  logic unused;
  assign unused = &{1'b0, sum_i[41]};  // a sum is not negative
endmodule
