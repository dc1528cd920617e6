// SPDX-License-Identifier: Apache-2.0
// Keeps the books of the result memory, a ring of sums of all rows, and hands its contents out a slice of rows a clock. A place is claimed by the step that completes a
// sum, so no sum ever waits for one.
//
// Results of the same slice from two segments are at least Spacing clocks apart: who reads a sum for a result and writes it back within that time never meets a stale one.
module array_drain
  import seat_pkg::SeatW;
#(
    parameter int unsigned Words = 64,  // places in the ring; a power of two
    parameter int unsigned Slices = 8,  // of a sum's rows
    parameter int unsigned Spacing = 8,
    parameter int unsigned AddrW = $clog2(Words),  // derived
    parameter int unsigned SliceW = (Slices > 1) ? $clog2(Slices) : 1  // derived
) (
    input logic clk_i,
    input logic rst_i,

    // Claims, in the order of the sums.
    output logic             room_o,
    input  logic             claim_i,
    input  logic [SeatW-1:0] claim_seat_i,
    input  logic [      1:0] claim_vector_i,
    input  logic             claim_last_i,    // of the segment

    // Result memory: the next sum in order is written, at waddr_o; the one at raddr_o goes to the register behind the memory.
    input  logic             write_i,
    output logic [AddrW-1:0] waddr_o,
    output logic             read_o,
    output logic [AddrW-1:0] raddr_o,

    // Results: slice_o of the register goes out.
    output logic              take_o,
    output logic [SliceW-1:0] slice_o,
    output logic              res_valid_o,
    input  logic              res_ready_i,
    output logic [ SeatW-1:0] res_seat_o,
    output logic [       1:0] res_vector_o,
    output logic [      15:0] res_slice_o,
    output logic              res_last_o
);
  localparam int unsigned Pause = (Spacing > Slices) ? Spacing - Slices : 0;
  localparam int unsigned PauseW = $clog2(Pause + 2);

  logic [AddrW-1:0] claim_addr_q;
  logic [SeatW-1:0] seat, seat_q;
  logic [1:0] vector, vector_q;
  logic last, last_q;
  lut_ram #(
      .Width(SeatW + 3),
      .Words(Words)
  ) u_claims (
      .clk_i,
      .we_i   (claim_i),
      .waddr_i(claim_addr_q),
      .wdata_i({claim_seat_i, claim_vector_i, claim_last_i}),
      .raddr_i(raddr_o),
      .rdata_o({seat, vector, last})
  );

  logic [AddrW:0] free_q;  // places not claimed
  logic [AddrW:0] written_q;  // sums there
  logic full_q;  // the register behind the memory
  logic [SliceW-1:0] slice_q;
  logic [PauseW-1:0] pause_q;
  logic last_slice, pause_passes;

  assign room_o = free_q != '0;
  assign last_slice = slice_q == SliceW'(Slices - 1);
  assign pause_passes = !res_valid_o;
  assign take_o = full_q && (!res_valid_o || res_ready_i) && (pause_q == '0 || (pause_q == PauseW'(1) && pause_passes));
  assign slice_o = slice_q;
  assign read_o = written_q != '0 && (!full_q || (take_o && last_slice));

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      claim_addr_q <= '0;
      waddr_o <= '0;
      raddr_o <= '0;
      free_q <= (AddrW + 1)'(Words);
      written_q <= '0;
      full_q <= 1'b0;
      slice_q <= '0;
      pause_q <= '0;
      res_valid_o <= 1'b0;
    end else begin
      if (claim_i) claim_addr_q <= claim_addr_q + 1'b1;
      if (write_i) waddr_o <= waddr_o + 1'b1;
      if (read_o) raddr_o <= raddr_o + 1'b1;
      free_q <= free_q - (AddrW + 1)'(claim_i) + (AddrW + 1)'(read_o);
      written_q <= written_q + (AddrW + 1)'(write_i) - (AddrW + 1)'(read_o);
      if (read_o) full_q <= 1'b1;
      else if (take_o && last_slice) full_q <= 1'b0;
      if (take_o) slice_q <= last_slice ? '0 : slice_q + 1'b1;
      if (take_o && last_slice && last_q) pause_q <= PauseW'(Pause);
      else if (pause_q != '0 && pause_passes) pause_q <= pause_q - 1'b1;
      if (take_o) res_valid_o <= 1'b1;
      else if (res_ready_i) res_valid_o <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (read_o) begin
      seat_q   <= seat;
      vector_q <= vector;
      last_q   <= last;
    end
    if (take_o) begin
      res_seat_o   <= seat_q;
      res_vector_o <= vector_q;
      res_slice_o  <= 16'(slice_q);
      res_last_o   <= last_q && last_slice;
    end
  end

`ifdef FORMAL
  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      assert (32'(free_q) <= Words && 32'(written_q) <= Words - 32'(free_q));
      assert (!claim_i || room_o);
    end
  end
`endif  // FORMAL
endmodule
