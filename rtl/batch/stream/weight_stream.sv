// SPDX-License-Identifier: Apache-2.0
// Reads the weight tiles of segments, in order, through all memory ports at once, each of which brings a slice of every tile. Contract: docs/blocks/weight_stream.md.
module weight_stream #(
    parameter int unsigned Rows = gharial_config_pkg::Rows,
    parameter int unsigned Cols = gharial_config_pkg::Cols,
    parameter int unsigned Ports = gharial_config_pkg::Ports,  // powers of two, these and those above
    parameter int unsigned PortBytes = gharial_config_pkg::PortBytes,
    parameter int unsigned Ahead = gharial_config_pkg::Ahead
) (
    input logic clk_i,
    input logic rst_i,

    // Segments: consecutive tiles, at least 1.
    input  logic        seg_valid_i,
    output logic        seg_ready_o,
    input  logic [23:0] seg_tile_i,
    input  logic [15:0] seg_tiles_i,

    // Tiles: on tile_o two clocks after it was taken, for a clock.
    output logic              tile_valid_o,
    input  logic              tile_ready_i,
    output logic [8*Cols-1:0] tile_o      [Rows],

    input logic [63:0] base_i,  // of the weights, a multiple of a burst

    // Faults, reset.
    output logic        error_o,       // one clock: a burst had an error response
    output logic [63:0] error_addr_o,
    input  logic        hold_i,        // forget everything, drop what comes; a clock suffices
    output logic        idle_o,        // nothing is outstanding

    output logic [15:0] bytes_o,  // that came in the clock before

    // Memory: an AXI4 read port each; bursts of INCR, all of one length and of the ports' whole width.
    output logic [      Ports-1:0] m_axi_arvalid_o,
    input  logic [      Ports-1:0] m_axi_arready_i,
    output logic [           63:0] m_axi_araddr_o [Ports],
    output logic [            7:0] m_axi_arlen_o  [Ports],
    input  logic [      Ports-1:0] m_axi_rvalid_i,
    output logic [      Ports-1:0] m_axi_rready_o,
    input  logic [8*PortBytes-1:0] m_axi_rdata_i  [Ports],
    input  logic [            1:0] m_axi_rresp_i  [Ports],
    input  logic [      Ports-1:0] m_axi_rlast_i
);
  localparam int unsigned TileBytes = Rows * Cols;
  localparam int unsigned SliceBytes = TileBytes / Ports;
  localparam int unsigned SliceBeats = SliceBytes / PortBytes;
  localparam int unsigned MostBeats = (256 * PortBytes > 4096) ? 4096 / PortBytes : 256;  // of a burst
  localparam int unsigned BurstBeats = (SliceBeats > MostBeats) ? MostBeats : SliceBeats;
  localparam int unsigned BurstBytes = BurstBeats * PortBytes;
  localparam int unsigned Bursts = SliceBeats / BurstBeats;
  localparam int unsigned BurstW = (Bursts > 1) ? $clog2(Bursts) : 1;
  localparam int unsigned PortW = (Ports > 1) ? $clog2(Ports) : 1;
  localparam int unsigned PortRows = Rows / Ports;
  localparam int unsigned TileW = $clog2(4 * Ahead);

  if (Rows % Ports != 0 || SliceBytes % PortBytes != 0) begin : gen_check_ports
    $error("%m: a port must bring whole rows of a tile, in whole beats");
  end
  if (1 << $clog2(
          TileBytes
      ) != TileBytes || 1 << $clog2(
          Ports
      ) != Ports || 1 << $clog2(
          PortBytes
      ) != PortBytes) begin : gen_check_powers
    $error("%m: Rows, Cols, Ports and PortBytes must be powers of two");
  end
  if (Ahead < 2 || 1 << $clog2(Ahead) != Ahead) begin : gen_check_ahead
    $error("%m: Ahead must be a power of two, at least 2");
  end

  // After a hold, nothing is requested until what was outstanding has come.
  logic flush, hold_q;
  logic [Ports-1:0] port_idle;
  assign flush  = hold_i || hold_q;
  assign idle_o = &port_idle;
  always_ff @(posedge clk_i) begin
    if (rst_i) hold_q <= 1'b0;
    else if (hold_i) hold_q <= 1'b1;
    else if (idle_o) hold_q <= 1'b0;
  end

  // Tiles of the segments, one a clock to all ports.
  logic [15:0] left_q;
  logic [23:0] tile_q;
  logic [TileW-1:0] number_q;  // of tiles pushed, counted round
  logic push;
  logic [Ports-1:0] push_ready;
  logic [63:0] tile_offset;
  assign push = left_q != '0 && (&push_ready);
  assign seg_ready_o = left_q == '0 && !flush;
  assign tile_offset = 64'(tile_q) * 64'(TileBytes);

  always_ff @(posedge clk_i) begin
    if (push) begin
      left_q   <= left_q - 1'b1;
      tile_q   <= tile_q + 1'b1;
      number_q <= number_q + 1'b1;
    end
    if (seg_valid_i && seg_ready_o) begin
      left_q <= seg_tiles_i;
      tile_q <= seg_tile_i;
    end
    if (rst_i || flush) begin
      left_q   <= '0;
      number_q <= '0;
    end
  end

  // A tile is there when all its slices are. One that is taken comes whole, also where a hold follows.
  logic take;
  logic [Ports-1:0] port_done;
  assign tile_valid_o = (&port_done) && !flush;
  assign take = tile_valid_o && tile_ready_i;

  logic [Ports-1:0] port_error, error_ack;
  logic [ TileW-1:0] port_error_tile [Ports];
  logic [BurstW-1:0] port_error_burst[Ports];
  for (genvar p = 0; p < Ports; p++) begin : gen_port
    logic [8*SliceBytes-1:0] slice;

    stream_port #(
        .PortBytes (PortBytes),
        .Ahead     (Ahead),
        .SliceBeats(SliceBeats),
        .BurstBeats(BurstBeats)
    ) u_port (
        .clk_i,
        .rst_i,
        .push_valid_i   (push),
        .push_ready_o   (push_ready[p]),
        .push_offset_i  (tile_offset | 64'(p * SliceBytes)),
        .base_i,
        .done_o         (port_done[p]),
        .take_i         (take),
        .slice_o        (slice),
        .flush_i        (flush),
        .idle_o         (port_idle[p]),
        .error_o        (port_error[p]),
        .error_tile_o   (port_error_tile[p]),
        .error_burst_o  (port_error_burst[p]),
        .error_ack_i    (error_ack[p]),
        .m_axi_arvalid_o(m_axi_arvalid_o[p]),
        .m_axi_arready_i(m_axi_arready_i[p]),
        .m_axi_araddr_o (m_axi_araddr_o[p]),
        .m_axi_rvalid_i (m_axi_rvalid_i[p]),
        .m_axi_rdata_i  (m_axi_rdata_i[p]),
        .m_axi_rresp_i  (m_axi_rresp_i[p]),
        .m_axi_rlast_i  (m_axi_rlast_i[p])
    );

    assign m_axi_arlen_o[p]  = 8'(BurstBeats - 1);
    assign m_axi_rready_o[p] = 1'b1;  // there is room for all that was asked for
    for (genvar r = 0; r < PortRows; r++) begin : gen_row
      assign tile_o[p*PortRows+r] = slice[8*Cols*r+:8*Cols];
    end
  end

  // Errors, one a clock. The numbers of the tiles on their way are kept for them alone: a port is at most 2 * Ahead behind.
  logic [23:0] error_tile;
  logic [TileW-1:0] error_number_q;
  logic [PortW-1:0] error_port, error_port_q;
  logic [BurstW-1:0] error_burst_q;
  logic error_q;
  lut_ram #(
      .Width(24),
      .Words(4 * Ahead)
  ) u_numbers (
      .clk_i,
      .we_i   (push),
      .waddr_i(number_q),
      .wdata_i(tile_q),
      .raddr_i(error_number_q),
      .rdata_o(error_tile)
  );
  always_comb begin
    error_port = '0;
    for (int p = int'(Ports) - 1; p >= 0; p--) if (port_error[p]) error_port = PortW'(p);
    error_ack = '0;
    error_ack[error_port] = port_error[error_port];
  end
  always_ff @(posedge clk_i) begin
    error_q <= port_error != '0 && !flush && !rst_i;
    error_port_q <= error_port;
    error_number_q <= port_error_tile[error_port];
    error_burst_q <= port_error_burst[error_port];
    error_o <= error_q && !flush && !rst_i;
    error_addr_o <= base_i + 64'(error_tile) * 64'(TileBytes) + 64'(32'(error_port_q) * SliceBytes) + 64'(32'(error_burst_q) * BurstBytes);
  end

  always_ff @(posedge clk_i) bytes_o <= 16'($countones(m_axi_rvalid_i) * PortBytes);

`ifdef FORMAL
  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      assert (!push || (base_i & 64'(BurstBytes - 1)) == '0);
      assert (!(seg_valid_i && seg_ready_o) || seg_tiles_i != '0);
    end
  end
`endif  // FORMAL
endmodule
