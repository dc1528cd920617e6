// SPDX-License-Identifier: Apache-2.0
// Writes one greedy token's two result words once its scan is done, while the decode thread goes on.
module token_writer (
    input logic clk_i,
    input logic rst_i,

    input logic               start_i,    // a scan for this token has been taken; only when not busy
    input logic        [63:0] address_i,
    input logic        [15:0] token_i,
    input logic signed [15:0] logit_i,

    input logic               scan_done_i,
    input logic signed [31:0] lse_i,

    output logic        busy_o,
    output logic        valid_o,
    input  logic        ready_i,
    output logic [63:0] address_o,
    output logic [31:0] data_o
);
  typedef enum logic [1:0] {
    Idle,
    Scan,
    Token,
    Lse
  } state_e;

  state_e state_q;
  logic [63:0] address_q;
  logic [31:0] word_q;

  assign busy_o = state_q != Idle;
  assign valid_o = state_q == Token || state_q == Lse;
  assign address_o = (state_q == Lse) ? address_q + 64'd4 : address_q;
  assign data_o = (state_q == Lse) ? lse_i : word_q;

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Idle: begin
        address_q <= address_i;
        word_q <= {token_i, logit_i};
        if (start_i) state_q <= Scan;
      end
      Scan: if (scan_done_i) state_q <= Token;
      Token: if (ready_i) state_q <= Lse;
      default: if (ready_i) state_q <= Idle;
    endcase
    if (rst_i) state_q <= Idle;
  end
endmodule
