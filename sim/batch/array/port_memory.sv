// SPDX-License-Identifier: Apache-2.0
// A memory port whose contents are computed from the address: of a given latency, with a beat in so many of eight clocks.
module port_memory #(
    parameter int unsigned PortBytes = 32,
    parameter int unsigned Beats = 8,  // of every burst
    parameter int unsigned Depth = 256,  // bursts that may be outstanding, a power of two
    parameter int unsigned Phase = 0  // of the clocks without a beat
) (
    input logic clk_i,
    input logic rst_i,

    input logic [15:0] latency_i,  // from a request to its first beat
    input logic [ 3:0] eighths_i,

    input  logic                   arvalid_i,
    input  logic [           63:0] araddr_i,
    output logic                   rvalid_o,
    output logic [8*PortBytes-1:0] rdata_o,
    output logic                   rlast_o
);
  localparam int unsigned AddrW = $clog2(Depth);

  logic [63:0] addr[Depth];
  logic [31:0] due [Depth];
  logic [AddrW-1:0] write_q, read_q;
  logic [ 8:0] beat_q;
  logic [ 2:0] phase_q;
  logic [31:0] clock_q;

  // Bytes from -64 to 63, by 32-bit words; sim/batch/array/test_stream_array.py does the same.
  function automatic logic [31:0] word(input logic [31:0] place);
    logic [31:0] mixed;
    mixed = (place ^ (place >> 15)) * 32'h9E3779B1;
    mixed = (mixed ^ (mixed >> 13)) * 32'h85EBCA6B;
    for (int b = 0; b < 4; b++) mixed[8*b+7] = mixed[8*b+6];
    return mixed;
  endfunction

  logic send;
  logic [31:0] at;
  assign at   = 32'((addr[read_q] + 64'(32'(beat_q) * PortBytes)) >> 2);
  assign send = write_q != read_q && clock_q - due[read_q] < 32'h80000000 && 4'(phase_q) < eighths_i;

  always_ff @(posedge clk_i) begin
    clock_q <= clock_q + 1;
    phase_q <= phase_q + 1'b1;
    if (arvalid_i) begin
      addr[write_q] <= araddr_i;
      due[write_q] <= clock_q + 32'(latency_i) - 1;
      write_q <= write_q + 1'b1;
    end
    rvalid_o <= send;
    rlast_o  <= beat_q == 9'(Beats - 1);
    for (int w = 0; w < int'(PortBytes / 4); w++) rdata_o[32*w+:32] <= word(at + w);
    if (send) begin
      beat_q <= (beat_q == 9'(Beats - 1)) ? '0 : beat_q + 1'b1;
      if (beat_q == 9'(Beats - 1)) read_q <= read_q + 1'b1;
    end
    if (rst_i) begin
      clock_q  <= '0;
      phase_q  <= 3'(Phase);
      write_q  <= '0;
      read_q   <= '0;
      beat_q   <= '0;
      rvalid_o <= 1'b0;
    end
  end
endmodule
