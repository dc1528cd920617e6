// SPDX-License-Identifier: Apache-2.0
// Fetches and zeros of the state mover: bursts are asked for as jobs come, several jobs ahead of the data; beats are cut into granules (what units and
// beats have in common), granules put together to units, and units written where they belong. Jobs end in order.
module move_fetch
  import seat_pkg::*;
#(
    parameter int unsigned Rows = gharial_config_pkg::Rows,
    parameter int unsigned Cols = gharial_config_pkg::Cols,
    parameter int unsigned PortBytes = gharial_config_pkg::PortBytes
) (
    input logic clk_i,
    input logic rst_i,
    input logic hold_i,

    input  logic      job_valid_i,
    output logic      job_ready_o,
    input  logic      client_i,
    input  move_job_t job_i,        // MoveFetch or MoveZero

    output logic        done_o,       // one clock: all is readable
    output logic        client_o,
    output logic [ 7:0] tag_o,
    output logic        failed_o,
    output logic [63:0] error_addr_o, // of the first beat that failed

    output logic                 act_we_o,
    input  logic                 act_ready_i,
    output logic [ SeatActW-1:0] act_addr_o,
    output logic [   8*Cols-1:0] act_data_o,
    output logic                 cell_we_o,
    input  logic                 cell_ready_i,
    output logic [SeatCellW-1:0] cell_addr_o,
    output logic [   4*Rows-1:0] cell_data_o,

    output logic                   idle_o,           // nothing outstanding
    output logic                   m_axi_arvalid_o,
    input  logic                   m_axi_arready_i,
    output logic [           63:0] m_axi_araddr_o,
    output logic [            7:0] m_axi_arlen_o,
    input  logic                   m_axi_rvalid_i,
    output logic                   m_axi_rready_o,
    input  logic [8*PortBytes-1:0] m_axi_rdata_i,
    input  logic [            1:0] m_axi_rresp_i,
    input  logic                   m_axi_rlast_i
);
  localparam int unsigned CellBytes = Rows / 2;
  localparam int unsigned Less = (Cols < CellBytes) ? Cols : CellBytes;
  localparam int unsigned Granule = (Less < PortBytes) ? Less : PortBytes;  // bytes
  localparam int unsigned Most = (Cols < CellBytes) ? CellBytes : Cols;
  localparam int unsigned ActParts = Cols / Granule;
  localparam int unsigned CellParts = CellBytes / Granule;
  localparam int unsigned MostParts = Most / Granule;
  localparam int unsigned PartW = (MostParts > 1) ? $clog2(MostParts) : 1;
  localparam int unsigned BeatParts = PortBytes / Granule;
  localparam int unsigned PlaceW = (BeatParts > 1) ? $clog2(BeatParts) : 1;
  localparam int unsigned RunW = 17 + $clog2(Most);
  localparam int unsigned Jobs = 8;  // ahead of their data
  localparam int unsigned Bursts = 8;  // outstanding
  localparam int unsigned Beats = 16;  // waiting

  typedef struct packed {
    logic client;
    logic zero;
    logic [63:0] addr;
    logic [SeatActW-1:0] act;
    logic [15:0] act_units;
    logic [SeatCellW-1:0] cell_unit;
    logic [15:0] cell_units;
    logic [7:0] tag;
  } piece_t;

  // Jobs: their bursts to the memory, themselves to the queue of those whose data come. A job needs both to be taken.
  logic reads, run_ready, queue_ready, taken, piece_valid, piece_taken;
  logic [RunW-1:0] run_bytes;
  piece_t piece;
  assign run_bytes = RunW'(job_i.act_units) * RunW'(Cols) + RunW'(job_i.cell_units) * RunW'(CellBytes);
  assign reads = job_i.op == MoveFetch && (job_i.act_units != '0 || job_i.cell_units != '0);
  assign job_ready_o = queue_ready && run_ready;
  assign taken = job_valid_i && job_ready_o;

  small_fifo #(
      .Width($bits(piece_t)),
      .Depth(Jobs)
  ) u_jobs (
      .clk_i,
      .rst_i,
      .push_valid_i(taken),
      .push_ready_o(queue_ready),
      .push_data_i({
        client_i,
        job_i.op != MoveFetch,
        job_i.addr,
        job_i.act,
        job_i.act_units,
        job_i.cell_unit,
        job_i.cell_units,
        job_i.tag
      }),
      .pop_valid_o(piece_valid),
      .pop_ready_i(piece_taken),
      .pop_data_o(piece)
  );

  logic burst_valid, burst_taken, room;
  logic [$clog2(Bursts+1)-1:0] outstanding_q;
  move_bursts #(
      .PortBytes(PortBytes),
      .RunW(RunW)
  ) u_bursts (
      .clk_i,
      .rst_i,
      .hold_i,
      .run_valid_i(taken && reads),
      .run_ready_o(run_ready),
      .run_addr_i(job_i.addr),
      .run_bytes_i(run_bytes),
      .burst_valid_o(burst_valid),
      .burst_ready_i(burst_taken),
      .burst_addr_o(m_axi_araddr_o),
      .burst_len_o(m_axi_arlen_o)
  );
  assign room = 32'(outstanding_q) != Bursts;
  assign m_axi_arvalid_o = burst_valid && room;  // room does not go away: only a burst's own asking takes it
  assign burst_taken = m_axi_arready_i && room;
  assign idle_o = outstanding_q == '0 && !burst_valid;

  logic burst_ended;
  assign burst_ended = m_axi_rvalid_i && m_axi_rready_o && m_axi_rlast_i;
  always_ff @(posedge clk_i) begin
    outstanding_q <= outstanding_q + $bits(
        outstanding_q
    )'(burst_valid && burst_taken) - $bits(
        outstanding_q
    )'(burst_ended);
    if (rst_i) outstanding_q <= '0;
  end

  // Beats that wait; each with whether it failed.
  logic beat_valid, beat_taken, beat_room, beat_failed;
  logic [8*PortBytes-1:0] beat;
  assign m_axi_rready_o = beat_room;  // also while held: what is there goes on to the seats, what comes does not
  small_fifo #(
      .Width(8 * PortBytes + 1),
      .Depth(Beats)
  ) u_beats (
      .clk_i,
      .rst_i,
      .push_valid_i(m_axi_rvalid_i && !hold_i),
      .push_ready_o(beat_room),
      .push_data_i ({m_axi_rresp_i != 2'b00, m_axi_rdata_i}),
      .pop_valid_o (beat_valid),
      .pop_ready_i (beat_taken),
      .pop_data_o  ({beat_failed, beat})
  );

  // The job whose data come.
  typedef enum logic [1:0] {
    Take,
    Units,
    Drain
  } state_e;

  state_e state_q;
  logic zero_q, out_full_q, out_cell_q, client_q, failed_q;
  logic [7:0] tag_q;
  logic [63:0] beat_addr_q, error_addr_q;
  logic [SeatActW-1:0] act_q, out_act_q;
  logic [SeatCellW-1:0] cell_q, out_cell_addr_q;
  logic [15:0] act_left_q, cell_left_q;
  logic [ PartW-1:0] part_q;
  logic [PlaceW-1:0] place_q;
  logic [8*Most-1:0] made_q, made, out_q;
  logic on_cells, last_part, last_unit, last_place, out_free, steps, makes;

  assign on_cells = act_left_q == '0;
  assign last_part = zero_q || 32'(part_q) == (on_cells ? CellParts - 1 : ActParts - 1);
  assign last_unit = (on_cells ? cell_left_q : act_left_q) == 16'd1 && (on_cells || cell_left_q == '0);
  assign last_place = 32'(place_q) == BeatParts - 1;
  assign out_free = !out_full_q || (out_cell_q ? cell_ready_i : act_ready_i);
  assign steps = state_q == Units && (zero_q || beat_valid) && (!last_part || out_free);
  assign makes = steps && last_part;  // a unit
  assign beat_taken = steps && !zero_q && (last_place || (last_part && last_unit));
  assign piece_taken = state_q == Take;

  always_comb begin
    made = made_q;
    made[8*Granule*part_q+:8*Granule] = beat[8*Granule*place_q+:8*Granule];
    if (zero_q) made = '0;
  end

  assign act_we_o = out_full_q && !out_cell_q;
  assign act_addr_o = out_act_q;
  assign act_data_o = out_q[8*Cols-1:0];
  assign cell_we_o = out_full_q && out_cell_q;
  assign cell_addr_o = out_cell_addr_q;
  assign cell_data_o = out_q[8*CellBytes-1:0];
  assign client_o = client_q;
  assign tag_o = tag_q;
  assign failed_o = failed_q;
  assign error_addr_o = error_addr_q;

  always_ff @(posedge clk_i) begin
    done_o <= 1'b0;
    if (out_free) out_full_q <= makes;
    if (makes) begin
      out_q <= made;
      out_cell_q <= on_cells;
      out_act_q <= act_q;
      out_cell_addr_q <= cell_q;
    end
    if (steps) begin
      made_q  <= made;
      part_q  <= last_part ? '0 : part_q + PartW'(1);
      place_q <= last_place ? '0 : place_q + PlaceW'(1);
      if (beat_taken) beat_addr_q <= beat_addr_q + 64'(PortBytes);
      if (beat_failed && !zero_q && !failed_q) begin
        failed_q <= 1'b1;
        error_addr_q <= beat_addr_q;
      end
    end
    if (makes) begin
      if (on_cells) begin
        cell_q <= cell_q + SeatCellW'(1);
        cell_left_q <= cell_left_q - 16'd1;
      end else begin
        act_q <= act_q + SeatActW'(1);
        act_left_q <= act_left_q - 16'd1;
      end
    end

    unique case (state_q)
      Take: begin
        client_q <= piece.client;
        zero_q <= piece.zero;
        tag_q <= piece.tag;
        failed_q <= 1'b0;
        act_q <= piece.act;
        act_left_q <= piece.act_units;
        cell_q <= piece.cell_unit;
        cell_left_q <= piece.cell_units;
        part_q <= '0;
        place_q <= (BeatParts > 1) ? PlaceW'(piece.addr >> $clog2(Granule)) : '0;
        beat_addr_q <= {piece.addr[63:$clog2(PortBytes)], {$clog2(PortBytes) {1'b0}}};
        if (piece_valid) state_q <= (piece.act_units == '0 && piece.cell_units == '0) ? Drain : Units;
      end
      Units: if (makes && last_unit) state_q <= Drain;
      default: begin
        if (out_free) begin
          done_o  <= 1'b1;
          state_q <= Take;
        end
      end
    endcase

    if (rst_i) begin
      state_q <= Take;
      out_full_q <= 1'b0;
      done_o <= 1'b0;
    end
  end
endmodule
