// SPDX-License-Identifier: Apache-2.0
// The input a fixed number of clocks later. Short delays are registers; longer ones a small circular memory, read just before
// the same place is written again. Not reset: what comes out in the first clocks after reset is undefined.

module delay_line #(
    parameter int unsigned Width  = 1,
    parameter int unsigned Clocks = 1   // at least 1
) (
    input logic clk_i,
    input logic rst_i,
    input logic [Width-1:0] data_i,
    output logic [Width-1:0] data_o
);

  localparam int unsigned MostRegisters = 3;

  if (Clocks == 0) begin : g_none
    $error("%m: a delay of no clocks");
  end else if (Clocks <= MostRegisters) begin : g_registers
    logic [Clocks-1:0][Width-1:0] stages_q;

    always_ff @(posedge clk_i) begin
      for (int unsigned n = 1; n < Clocks; n++) stages_q[n] <= stages_q[n-1];
      stages_q[0] <= data_i;
    end

    assign data_o = stages_q[Clocks-1];

    // The short forms have no state to reset.
    logic unused_rst;
    assign unused_rst = rst_i;
  end else begin : g_memory
    localparam int unsigned Depth = Clocks - 1;  // the output register is the last clock
    localparam int unsigned PlaceW = $clog2(Depth);

    (* ram_style = "distributed" *)logic [ Width-1:0] memory  [Depth];
    logic [PlaceW-1:0] place_q;
    logic [ Width-1:0] data_q;

    always_ff @(posedge clk_i) begin
      data_q <= memory[place_q];
      memory[place_q] <= data_i;
      if (rst_i || place_q == PlaceW'(Depth - 1)) place_q <= '0;
      else place_q <= place_q + 1'b1;
    end

    assign data_o = data_q;
  end

endmodule
