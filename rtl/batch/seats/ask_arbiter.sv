// SPDX-License-Identifier: Apache-2.0
// Several who ask one port that answers in order, one question at a time; the first of them first.
module ask_arbiter #(
    parameter int unsigned Clients = 2,
    parameter int unsigned Width   = 16
) (
    input logic clk_i,
    input logic rst_i,

    input  logic [Clients-1:0]            valid_i,
    output logic [Clients-1:0]            ready_o,
    input  logic [Clients-1:0][Width-1:0] ask_i,
    output logic [Clients-1:0]            got_o,

    output logic             valid_o,
    input  logic             ready_i,
    output logic [Width-1:0] ask_o,
    input  logic             got_i
);
  localparam int unsigned ClientW = (Clients > 1) ? $clog2(Clients) : 1;

  // A question that is offered stays: who asks first has the port until the answer.
  logic busy_q, asked_q;
  logic [ClientW-1:0] owner_q;
  assign valid_o = busy_q && !asked_q;
  assign ask_o   = ask_i[owner_q];
  always_comb begin
    ready_o = '0;
    got_o = '0;
    ready_o[owner_q] = valid_o && ready_i;
    got_o[owner_q] = busy_q && got_i;
  end

  always_ff @(posedge clk_i) begin
    if (!busy_q) begin
      for (int c = int'(Clients) - 1; c >= 0; c--) if (valid_i[c]) owner_q <= ClientW'(c);
      busy_q  <= valid_i != '0;
      asked_q <= 1'b0;
    end else begin
      if (ready_i) asked_q <= 1'b1;
      if (got_i) busy_q <= 1'b0;
    end
    if (rst_i) busy_q <= 1'b0;
  end
endmodule
