// SPDX-License-Identifier: Apache-2.0
// Keeps the books of the result memory, a ring of sums of all rows, and hands its contents out four rows, a lane, at a time. Places are claimed before a group's first step,
// so no sum ever waits for one.
//
// Results with the same place in their row group, from two jobs, are at least Spacing clocks with res_ready_i apart: who reads a sum for a
// result and writes it back within that time never meets a stale one. Between the last result of a job and the next one there is a pause for it.
module matrix_drain #(
    parameter int unsigned Rows = 32,  // a power of two, at least 8
    parameter int unsigned MaxVectors = 4,
    parameter int unsigned Words = 16,  // places in the ring, each a vector's sums of a row group; a power of two
    parameter int unsigned Spacing = 4,
    parameter int unsigned AddrW = $clog2(Words)  // derived
) (
    input logic clk_i,
    input logic rst_i,

    // From the walker: claims, and what each sum will be, in order.
    output logic        room_o,          // for a group of MaxVectors, a register
    input  logic        claim_i,
    input  logic [ 1:0] claim_less_1_i,
    input  logic        entry_i,
    input  logic [15:0] entry_group_i,
    input  logic [ 1:0] entry_vector_i,
    input  logic        entry_last_i,

    // From the accumulators: the next sum in order is written.
    input logic write_i,

    // Each lane's oldest sums: of this sum two clocks after it was written, of the next one two clocks after they were taken.
    input  logic signed [      31:0] rsums_i[Rows],
    output logic        [Rows/4-1:0] taken_o,

    // Results.
    output logic               res_valid_o,
    input  logic               res_ready_i,
    output logic signed [31:0] res_sums_o  [4],
    output logic        [15:0] res_group_o,
    output logic        [ 1:0] res_vector_o,
    output logic        [15:0] res_quad_o,
    output logic               res_last_o
);
  localparam int unsigned Quads = Rows / 4;
  localparam int unsigned QuadW = (Quads > 1) ? $clog2(Quads) : 1;
  localparam int unsigned Pause = (Spacing > Quads) ? Spacing - Quads : 0;
  localparam int unsigned PauseW = $clog2(Pause + 2);
  localparam int unsigned EntryW = 16 + 2 + 1;

  // What comes, as soon as its last step is under way.
  logic [AddrW-1:0] entry_addr_q, read_addr_q;
  logic [15:0] group;
  logic [1:0] vector;
  logic last_of_job;
  lut_ram #(
      .Width(EntryW),
      .Words(Words)
  ) u_entries (
      .clk_i,
      .we_i   (entry_i),
      .waddr_i(entry_addr_q),
      .wdata_i({entry_group_i, entry_vector_i, entry_last_i}),
      .raddr_i(read_addr_q),
      .rdata_o({group, vector, last_of_job})
  );

  logic [AddrW:0] free_q, free_d;  // places not claimed
  logic [AddrW:0] written_q;  // sums that the lanes show
  logic write_q, shown_q;  // shown: there are some
  logic [ QuadW-1:0] quad_q;
  logic [PauseW-1:0] pause_q;
  logic take, pop, last_quad, pause_passes, paused;

  assign free_d = free_q - (claim_i ? (AddrW + 1)'(claim_less_1_i) + 1'b1 : '0) + (AddrW + 1)'(pop);
  // A clock of the pause passes where a result could have been taken, had there been one.
  assign pause_passes = !res_valid_o && res_ready_i;
  if (Pause == 0) begin : gen_no_pause
    assign paused = 1'b0;
  end else begin : gen_pause
    assign paused = pause_q != '0 && !(pause_q == PauseW'(1) && pause_passes);
  end
  assign take = shown_q && (!res_valid_o || res_ready_i) && !paused;
  assign last_quad = quad_q == QuadW'(Quads - 1);
  assign pop = take && last_quad;
  always_comb begin
    for (int lane = 0; lane < int'(Quads); lane++) taken_o[lane] = take && quad_q == QuadW'(lane);
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      entry_addr_q <= '0;
      read_addr_q <= '0;
      write_q <= 1'b0;
      shown_q <= 1'b0;
      room_o <= 1'b1;
      free_q <= (AddrW + 1)'(Words);
      written_q <= '0;
      quad_q <= '0;
      pause_q <= '0;
    end else begin
      if (entry_i) entry_addr_q <= entry_addr_q + 1'b1;
      write_q <= write_i;
      if (pop) read_addr_q <= read_addr_q + 1'b1;
      free_q <= free_d;
      room_o <= free_d >= (AddrW + 1)'(MaxVectors);
      shown_q <= write_q || (shown_q && !(pop && written_q == (AddrW + 1)'(1)));
      written_q <= written_q + (AddrW + 1)'(write_q) - (AddrW + 1)'(pop);
      if (take) quad_q <= last_quad ? '0 : quad_q + 1'b1;
      if (pop && last_of_job) begin
        pause_q <= PauseW'(Pause);
      end else if (pause_q != '0 && pause_passes) begin
        pause_q <= pause_q - 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      for (int i = 0; i < 4; i++) res_sums_o[i] <= rsums_i[4*32'(quad_q)+i];
      res_group_o  <= group;
      res_vector_o <= vector;
      res_quad_o   <= 16'(quad_q);
      res_last_o   <= last_of_job && last_quad;
    end
    if (rst_i) begin
      res_valid_o <= 1'b0;
    end else if (take) begin
      res_valid_o <= 1'b1;
    end else if (res_ready_i) begin
      res_valid_o <= 1'b0;
    end
  end

`ifdef FORMAL
  logic [AddrW:0] claimed_q;
  always_ff @(posedge clk_i) begin
    if (rst_i) claimed_q <= '0;
    else if (claim_i) claimed_q <= claimed_q + (AddrW + 1)'(claim_less_1_i) + ((AddrW + 1)'(1) - (AddrW + 1)'(pop));
    else if (pop) claimed_q <= claimed_q - 1'b1;
    if (!rst_i) begin
      assert (32'(free_q) + 32'(claimed_q) == Words);
      assert (32'(free_q) <= Words && 32'(written_q) <= Words - 32'(free_q));
      assert (!claim_i || room_o);
      assert (room_o == (32'(free_q) >= MaxVectors) && shown_q == (written_q != '0));
    end
  end
`endif  // FORMAL
endmodule
