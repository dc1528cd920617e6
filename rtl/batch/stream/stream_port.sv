// SPDX-License-Identifier: Apache-2.0
// One memory port of the weight stream: requests its slice of each tile as soon as there is room for the beats, and keeps what comes, the beats of a tile side by side.
// Beats come in the order of the requests, and are never held up.
module stream_port #(
    parameter int unsigned PortBytes = 32,
    parameter int unsigned Ahead = 16,  // tiles there is room for, a power of two
    parameter int unsigned SliceBeats = 8,  // of a tile, a power of two
    parameter int unsigned BurstBeats = 8,  // a power of two, at most SliceBeats
    parameter int unsigned TileW = $clog2(4 * Ahead),  // derived: tiles, counted round
    parameter int unsigned Bursts = SliceBeats / BurstBeats,  // derived
    parameter int unsigned BurstW = (Bursts > 1) ? $clog2(Bursts) : 1  // derived
) (
    input logic clk_i,
    input logic rst_i,

    // Tiles to fetch: where this port's slice starts, as distance from the base.
    input  logic        push_valid_i,
    output logic        push_ready_o,
    input  logic [63:0] push_offset_i,
    input  logic [63:0] base_i,

    // A tile's slice: two clocks after both were high, it is on slice_o.
    output logic                              done_o,
    input  logic                              take_i,
    output logic [8*PortBytes*SliceBeats-1:0] slice_o,

    // Faults and reset.
    input  logic              flush_i,        // forget everything; what comes is dropped
    output logic              idle_o,         // no burst is outstanding
    output logic              error_o,        // a burst had an error response, until acknowledged
    output logic [ TileW-1:0] error_tile_o,   // counted from the last flush
    output logic [BurstW-1:0] error_burst_o,
    input  logic              error_ack_i,

    // Memory.
    output logic                   m_axi_arvalid_o,
    input  logic                   m_axi_arready_i,
    output logic [           63:0] m_axi_araddr_o,
    input  logic                   m_axi_rvalid_i,
    input  logic [8*PortBytes-1:0] m_axi_rdata_i,
    input  logic [            1:0] m_axi_rresp_i,
    input  logic                   m_axi_rlast_i
);
  localparam int unsigned AddrW = $clog2(Ahead);
  localparam int unsigned BeatW = (SliceBeats > 1) ? $clog2(SliceBeats) : 1;
  localparam int unsigned RoomW = $clog2(Ahead + 1);
  localparam int unsigned OutW = $clog2(Ahead * Bursts + 1);
  localparam int unsigned BurstBytes = BurstBeats * PortBytes;

  // Requests.
  logic tile_valid, request, last_burst;
  logic [63:0] offset;
  logic [BurstW-1:0] burst_q;
  logic [RoomW-1:0] room_q;  // tiles
  logic [OutW-1:0] outstanding_q;  // bursts, with the one that is offered
  logic ended;

  small_fifo #(
      .Width(64),
      .Depth(Ahead)
  ) u_tiles (
      .clk_i,
      .rst_i      (rst_i || flush_i),
      .push_valid_i,
      .push_ready_o,
      .push_data_i(push_offset_i),
      .pop_valid_o(tile_valid),
      .pop_ready_i(request && last_burst),
      .pop_data_o (offset)
  );

  assign request = tile_valid && !flush_i && (!m_axi_arvalid_o || m_axi_arready_i) && (burst_q != '0 || room_q != '0);
  assign last_burst = burst_q == BurstW'(Bursts - 1);
  assign ended = m_axi_rvalid_i && m_axi_rlast_i;
  assign idle_o = outstanding_q == '0;

  always_ff @(posedge clk_i) begin
    if (request) begin
      m_axi_araddr_o <= base_i + offset + 64'(32'(burst_q) * BurstBytes);
      burst_q <= last_burst ? '0 : burst_q + 1'b1;
    end
    if (request) m_axi_arvalid_o <= 1'b1;
    else if (m_axi_arready_i) m_axi_arvalid_o <= 1'b0;
    outstanding_q <= outstanding_q + OutW'(request) - OutW'(ended);
    room_q <= room_q + RoomW'(take_i) - RoomW'(request && burst_q == '0);
    if (rst_i || flush_i) begin
      burst_q <= '0;
      room_q  <= RoomW'(Ahead);
    end
    if (rst_i) begin
      m_axi_arvalid_o <= 1'b0;
      outstanding_q   <= '0;
    end
  end

  // Beats kept, those of a tile side by side: a tile is read whole, the clock after it was taken, so tiles may go as fast as the array likes.
  logic push, last_beat, came, taken_q;
  logic [BeatW-1:0] place_q;
  logic [AddrW-1:0] write_q, read_q;
  logic [RoomW-1:0] whole_q;  // tiles that are there
  (* ram_style = "distributed" *)
  logic [SliceBeats-1:0][8*PortBytes-1:0] mem[Ahead];

  assign push = m_axi_rvalid_i && !flush_i;
  assign last_beat = place_q == BeatW'(SliceBeats - 1);
  assign came = push && last_beat;
  assign done_o = whole_q != '0;

  always_ff @(posedge clk_i) begin
    if (push) mem[write_q][place_q] <= m_axi_rdata_i;
    if (taken_q) slice_o <= mem[read_q];
  end
  always_ff @(posedge clk_i) begin
    if (push) place_q <= last_beat ? '0 : place_q + 1'b1;
    if (came) write_q <= write_q + 1'b1;
    if (taken_q) read_q <= read_q + 1'b1;
    taken_q <= take_i;
    whole_q <= whole_q + RoomW'(came) - RoomW'(take_i);
    if (rst_i || flush_i) begin
      place_q <= '0;
      whole_q <= '0;
      write_q <= '0;  // a tile that was taken is read in this clock
      read_q  <= '0;
    end
    if (rst_i) taken_q <= 1'b0;
  end

  // Errors: of a burst the first, and none more until it was told.
  logic [ TileW-1:0] came_tile_q;
  logic [BurstW-1:0] came_burst_q;
  always_ff @(posedge clk_i) begin
    if (ended) begin
      came_burst_q <= (came_burst_q == BurstW'(Bursts - 1)) ? '0 : came_burst_q + 1'b1;
      if (came_burst_q == BurstW'(Bursts - 1)) came_tile_q <= came_tile_q + 1'b1;
    end
    if (error_ack_i) error_o <= 1'b0;
    if (push && m_axi_rresp_i != 2'b00 && !error_o) begin
      error_o <= 1'b1;
      error_tile_o <= came_tile_q;
      error_burst_o <= came_burst_q;
    end
    if (rst_i || flush_i) begin
      error_o <= 1'b0;
      came_tile_q <= '0;
      came_burst_q <= '0;
    end
  end

`ifdef FORMAL
  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      assert (32'(room_q) <= Ahead);
      assert (32'(whole_q) <= Ahead);
      assert (!take_i || done_o);
      assert (!ended || outstanding_q != '0);
    end
  end
`endif  // FORMAL
endmodule
