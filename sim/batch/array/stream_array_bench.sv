// SPDX-License-Identifier: Apache-2.0
// Weight stream and array unit together, on memories whose contents are computed from the address, with segments that are all alike and results that are taken at once:
// what the two reach, and how fast they simulate.
module stream_array_bench
  import seat_pkg::*;
#(
    parameter int unsigned Rows = gharial_config_pkg::Rows,
    parameter int unsigned Cols = gharial_config_pkg::Cols,
    parameter int unsigned Lanes = gharial_config_pkg::Lanes,
    parameter int unsigned Ports = gharial_config_pkg::Ports,
    parameter int unsigned PortBytes = gharial_config_pkg::PortBytes
) (
    input logic clk_i,
    input logic rst_i,  // then all starts

    input logic   [15:0] segments_i,
    input logic   [15:0] tiles_i,     // of a segment
    input seats_t        seats_i,
    input logic   [ 1:0] vectors_i,
    input logic   [15:0] latency_i,
    input logic   [ 3:0] eighths_i,   // clocks of eight with a beat

    output logic                    res_valid_o,
    output logic signed [     31:0] res_sums_o  [4*Lanes],
    output logic        [SeatW-1:0] res_seat_o,
    output logic        [      1:0] res_vector_o,
    output logic        [     15:0] res_slice_o,
    output logic                    res_last_o,

    output logic        done_o,     // the last result is out
    output logic [31:0] clocks_o,   // from the first step to the last
    output logic [31:0] active_o,   // clocks
    output logic [31:0] starved_o,
    output logic [31:0] blocked_o,
    output logic [31:0] beats_o
);
  localparam int unsigned Beats = Rows * Cols / Ports / PortBytes;

  // Segments, one after another in the weights and the activations.
  logic [15:0] stream_left_q, array_left_q, ends_left_q;
  logic [23:0] stream_tile_q;
  logic [SeatActW-1:0] source_q;
  logic stream_ready, array_ready;
  segment_t segment;
  always_comb begin
    segment = '0;
    segment.seats = seats_i;
    segment.vectors_less_1 = vectors_i - 2'd1;
    segment.col_tiles = tiles_i;
    segment.source = source_q;
    segment.source_stride = 16'd64;
    segment.source_shift = 5'd9;
  end
  always_ff @(posedge clk_i) begin
    if (stream_ready && stream_left_q != '0) begin
      stream_left_q <= stream_left_q - 1'b1;
      stream_tile_q <= stream_tile_q + 24'(tiles_i);
    end
    if (array_ready && array_left_q != '0) begin
      array_left_q <= array_left_q - 1'b1;
      source_q <= source_q + SeatActW'(tiles_i);
    end
    if (res_valid_o && res_last_o) ends_left_q <= ends_left_q - 1'b1;
    if (rst_i) begin
      stream_left_q <= segments_i;
      array_left_q <= segments_i;
      ends_left_q <= segments_i;
      stream_tile_q <= '0;
      source_q <= '0;
    end
  end
  assign done_o = ends_left_q == '0;

  logic tile_valid, tile_ready;
  logic [8*Cols-1:0] tile[Rows];
  logic [15:0] bytes;
  logic [Ports-1:0] arvalid, rvalid, rlast;
  logic [63:0] araddr[Ports];
  logic [8*PortBytes-1:0] rdata[Ports];
  logic [1:0] rresp[Ports];
  logic error, idle;
  logic [63:0] error_addr;
  logic [7:0] arlen[Ports];
  logic [Ports-1:0] rready;
  weight_stream u_stream (
      .clk_i,
      .rst_i,
      .seg_valid_i    (stream_left_q != '0),
      .seg_ready_o    (stream_ready),
      .seg_tile_i     (stream_tile_q),
      .seg_tiles_i    (tiles_i),
      .tile_valid_o   (tile_valid),
      .tile_ready_i   (tile_ready),
      .tile_o         (tile),
      .base_i         ('0),
      .error_o        (error),
      .error_addr_o   (error_addr),
      .hold_i         (1'b0),
      .idle_o         (idle),
      .bytes_o        (bytes),
      .m_axi_arvalid_o(arvalid),
      .m_axi_arready_i('1),
      .m_axi_araddr_o (araddr),
      .m_axi_arlen_o  (arlen),
      .m_axi_rvalid_i (rvalid),
      .m_axi_rready_o (rready),
      .m_axi_rdata_i  (rdata),
      .m_axi_rresp_i  (rresp),
      .m_axi_rlast_i  (rlast)
  );
  for (genvar p = 0; p < Ports; p++) begin : gen_port
    assign rresp[p] = 2'b00;
    port_memory #(
        .PortBytes(PortBytes),
        .Beats(Beats),
        .Phase(p)
    ) u_memory (
        .clk_i,
        .rst_i,
        .latency_i,
        .eighths_i,
        .arvalid_i(arvalid[p]),
        .araddr_i (araddr[p]),
        .rvalid_o (rvalid[p]),
        .rdata_o  (rdata[p]),
        .rlast_o  (rlast[p])
    );
  end

  // Activations: unit u has bytes u + 37 * c.
  logic act_en, act_en_q;
  logic [7:0] act_addr_q;
  logic [SeatActW-1:0] act_addr;
  logic [8*Cols-1:0] act_data;
  always_ff @(posedge clk_i) begin
    act_en_q   <= act_en;
    act_addr_q <= act_addr[7:0];
    if (act_en_q) for (int c = 0; c < int'(Cols); c++) act_data[8*c+:8] <= act_addr_q + 8'(37 * c);
  end

  logic active, starved, blocked;
  array_unit u_array (
      .clk_i,
      .rst_i,
      .seg_valid_i (array_left_q != '0),
      .seg_ready_o (array_ready),
      .seg_i       (segment),
      .tile_valid_i(tile_valid),
      .tile_ready_o(tile_ready),
      .tile_i      (tile),
      .act_en_o    (act_en),
      .act_addr_o  (act_addr),
      .act_data_i  (act_data),
      .res_valid_o,
      .res_ready_i (1'b1),
      .res_sums_o,
      .res_seat_o,
      .res_vector_o,
      .res_slice_o,
      .res_last_o,
      .active_o    (active),
      .starved_o   (starved),
      .blocked_o   (blocked)
  );

  logic [31:0] run_q;
  always_ff @(posedge clk_i) begin
    if (active) begin
      active_o <= active_o + 1;
      clocks_o <= run_q + 1;
    end
    if (active_o != '0 || active) run_q <= run_q + 1;
    if (active_o != '0 && starved) starved_o <= starved_o + 1;
    if (active_o != '0 && blocked) blocked_o <= blocked_o + 1;
    beats_o <= beats_o + 32'(bytes) / PortBytes;
    if (rst_i) begin
      active_o <= '0;
      starved_o <= '0;
      blocked_o <= '0;
      clocks_o <= '0;
      beats_o <= '0;
      run_q <= '0;
    end
  end

  logic unused;
  assign unused = &{1'b0, error, error_addr, idle, act_addr, arlen[0], rready};
endmodule
