// SPDX-License-Identifier: Apache-2.0
// The input a fixed number of clocks later. Short delays are registers; longer ones a small circular memory, read just before the same
// place is written again. Not reset: what comes out in the first clocks is undefined.
module delay_line #(
    parameter int unsigned Width  = 1,
    parameter int unsigned Clocks = 1   // at least 1
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic [Width-1:0] data_i,
    output logic [Width-1:0] data_o
);
  localparam int unsigned MostRegisters = 3;

  if (Clocks == 0) begin : gen_none
    $error("%m: Clocks must be at least 1");
  end else if (Clocks <= MostRegisters) begin : gen_registers
    logic [Clocks-1:0][Width-1:0] stages_q;

    always_ff @(posedge clk_i) begin
      for (int unsigned n = 1; n < Clocks; n++) stages_q[n] <= stages_q[n-1];
      stages_q[0] <= data_i;
    end

    assign data_o = stages_q[Clocks-1];

    logic unused;
    assign unused = rst_i;
  end else begin : gen_memory
    localparam int unsigned Words = Clocks - 1;  // the output register is the last clock
    localparam int unsigned AddrW = $clog2(Words);

    logic [AddrW-1:0] place_q;
    logic [Width-1:0] oldest;

    lut_ram #(
        .Width(Width),
        .Words(Words)
    ) u_ram (
        .clk_i,
        .we_i(1'b1),
        .waddr_i(place_q),
        .wdata_i(data_i),
        .raddr_i(place_q),
        .rdata_o(oldest)
    );

    always_ff @(posedge clk_i) begin
      data_o <= oldest;
      if (rst_i || place_q == AddrW'(Words - 1)) place_q <= '0;
      else place_q <= place_q + 1'b1;
    end
  end
endmodule
