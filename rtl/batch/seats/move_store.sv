// SPDX-License-Identifier: Apache-2.0
// Stores of the state mover, one job at a time: units are read from the seats, cut into granules, granules put together to beats with their strobes,
// and beats written in bursts. A job ends when its last burst is answered.
module move_store
  import seat_pkg::*;
#(
    parameter int unsigned Rows = gharial_config_pkg::Rows,
    parameter int unsigned Cols = gharial_config_pkg::Cols,
    parameter int unsigned PortBytes = gharial_config_pkg::PortBytes
) (
    input logic clk_i,
    input logic rst_i,
    input logic hold_i, // no new bursts; what is owed is written with no byte enabled

    input  logic            job_valid_i,
    output logic            job_ready_o,
    input  logic            client_i,
    input  move_job_t       job_i,
    input  logic      [4:0] fetches_i,    // on their way when the job is taken: it waits for them
    input  logic            fetch_done_i,

    output logic        done_o,       // one clock
    output logic        client_o,
    output logic [ 7:0] tag_o,
    output logic        failed_o,
    output logic [63:0] error_addr_o, // of the first burst that failed

    output logic                 act_re_o,
    input  logic                 act_ready_i,
    output logic [ SeatActW-1:0] act_addr_o,
    input  logic [   8*Cols-1:0] act_data_i,    // two clocks later
    output logic                 cell_re_o,
    input  logic                 cell_ready_i,
    output logic [SeatCellW-1:0] cell_addr_o,
    input  logic [   4*Rows-1:0] cell_data_i,

    output logic                   idle_o,           // nothing outstanding
    output logic                   m_axi_awvalid_o,
    input  logic                   m_axi_awready_i,
    output logic [           63:0] m_axi_awaddr_o,
    output logic [            7:0] m_axi_awlen_o,
    output logic                   m_axi_wvalid_o,
    input  logic                   m_axi_wready_i,
    output logic [8*PortBytes-1:0] m_axi_wdata_o,
    output logic [  PortBytes-1:0] m_axi_wstrb_o,
    output logic                   m_axi_wlast_o,
    input  logic                   m_axi_bvalid_i,
    output logic                   m_axi_bready_o,
    input  logic [            1:0] m_axi_bresp_i
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
  localparam int unsigned Bursts = 8;  // outstanding
  localparam int unsigned Units = 8;  // read ahead

  typedef enum logic [2:0] {
    Take,
    Wait,  // for older fetches
    Run,
    Answers,
    Done
  } state_e;

  state_e state_q;
  logic empty_q, client_q, failed_q;
  logic [7:0] tag_q;
  logic [4:0] fetches_q;
  logic [63:0] addr_q, error_addr_q;
  logic [RunW-1:0] bytes_q;
  logic run_ready, all_sent;
  assign job_ready_o = state_q == Take && !hold_i;
  assign client_o = client_q;
  assign tag_o = tag_q;
  assign failed_o = failed_q;
  assign error_addr_o = error_addr_q;
  assign done_o = state_q == Done;

  // Bursts: addresses to the memory and to the queue of those unanswered, lengths to the data's side.
  logic burst_valid, burst_taken, lens_ready, len_valid, len_taken, pending_ready, pending_valid;
  logic [63:0] pending_addr;
  logic [7:0] len;
  logic [$clog2(Bursts+1)-1:0] outstanding_q;
  move_bursts #(
      .PortBytes(PortBytes),
      .RunW(RunW)
  ) u_bursts (
      .clk_i,
      .rst_i,
      .hold_i,
      .run_valid_i(state_q == Wait && fetches_q == '0 && !empty_q),
      .run_ready_o(run_ready),
      .run_addr_i(addr_q),
      .run_bytes_i(bytes_q),
      .burst_valid_o(burst_valid),
      .burst_ready_i(burst_taken),
      .burst_addr_o(m_axi_awaddr_o),
      .burst_len_o(m_axi_awlen_o)
  );
  assign m_axi_awvalid_o = burst_valid && lens_ready && pending_ready;  // neither goes away: only a burst's own asking fills them
  assign burst_taken = m_axi_awready_i && lens_ready && pending_ready;
  assign m_axi_bready_o = 1'b1;
  assign idle_o = outstanding_q == '0 && !burst_valid && !len_valid && !m_axi_wvalid_o;

  small_fifo #(
      .Width(8),
      .Depth(Bursts)
  ) u_lens (
      .clk_i,
      .rst_i,
      .push_valid_i(burst_valid && burst_taken),
      .push_ready_o(lens_ready),
      .push_data_i (m_axi_awlen_o),
      .pop_valid_o (len_valid),
      .pop_ready_i (len_taken),
      .pop_data_o  (len)
  );
  small_fifo #(
      .Width(64),
      .Depth(Bursts)
  ) u_pending (
      .clk_i,
      .rst_i,
      .push_valid_i(burst_valid && burst_taken),
      .push_ready_o(pending_ready),
      .push_data_i (m_axi_awaddr_o),
      .pop_valid_o (pending_valid),
      .pop_ready_i (m_axi_bvalid_i),
      .pop_data_o  (pending_addr)
  );

  always_ff @(posedge clk_i) begin
    outstanding_q <= outstanding_q + $bits(
        outstanding_q
    )'(burst_valid && burst_taken) - $bits(
        outstanding_q
    )'(m_axi_bvalid_i);
    if (rst_i) outstanding_q <= '0;
  end

  // Units: read while there is room for them.
  logic [ SeatActW-1:0] act_q;
  logic [SeatCellW-1:0] cell_q;
  logic [15:0] act_left_q, cell_left_q;
  logic [$clog2(Units+1)-1:0] room_q;
  logic [1:0] asked_q, asked_cell_q;
  logic reads, asked, unit_valid, unit_taken, unit_room, unit_cell;
  logic [8*Most-1:0] read_unit, unit_data;
  assign reads = state_q == Run && room_q != '0;
  assign act_re_o = reads && act_left_q != '0;
  assign cell_re_o = reads && act_left_q == '0 && cell_left_q != '0;
  assign act_addr_o = act_q;
  assign cell_addr_o = cell_q;
  assign asked = (act_re_o && act_ready_i) || (cell_re_o && cell_ready_i);
  always_comb begin
    read_unit = '0;
    if (asked_cell_q[1]) read_unit[8*CellBytes-1:0] = cell_data_i;
    else read_unit[8*Cols-1:0] = act_data_i;
  end

  small_fifo #(
      .Width(8 * Most + 1),
      .Depth(Units)
  ) u_units (
      .clk_i,
      .rst_i,
      .push_valid_i(asked_q[1]),
      .push_ready_o(unit_room),
      .push_data_i ({asked_cell_q[1], read_unit}),
      .pop_valid_o (unit_valid),
      .pop_ready_i (unit_taken),
      .pop_data_o  ({unit_cell, unit_data})
  );

  always_ff @(posedge clk_i) begin
    asked_q <= {asked_q[0], asked};
    asked_cell_q <= {asked_cell_q[0], cell_re_o};
    room_q <= room_q + $bits(room_q)'(unit_taken) - $bits(room_q)'(asked);
    if (asked) begin
      if (act_re_o) begin
        act_q <= act_q + SeatActW'(1);
        act_left_q <= act_left_q - 16'd1;
      end else begin
        cell_q <= cell_q + SeatCellW'(1);
        cell_left_q <= cell_left_q - 16'd1;
      end
    end
    if (state_q == Take) begin
      act_q <= job_i.act;
      act_left_q <= job_i.act_units;
      cell_q <= job_i.cell_unit;
      cell_left_q <= job_i.cell_units;
    end
    if (rst_i) begin
      asked_q <= '0;
      room_q  <= Units[$bits(room_q)-1:0];
    end
  end

  // Granules to beats. A beat is full at its last place, or with the job's last granule.
  logic [ PartW-1:0] part_q;
  logic [PlaceW-1:0] place_q;
  logic [  RunW-1:0] granules_q;  // left of the job
  logic [8*PortBytes-1:0] beat_q, beat;
  logic [PortBytes-1:0] strobe_q, strobe;
  logic beat_full_q, beat_taken, steps, last_part, last_place, last_granule;
  assign last_part = 32'(part_q) == (unit_cell ? CellParts - 1 : ActParts - 1);
  assign last_place = 32'(place_q) == BeatParts - 1;
  assign last_granule = granules_q == RunW'(1);
  assign steps = unit_valid && (!beat_full_q || beat_taken);
  assign unit_taken = steps && last_part;
  always_comb begin
    beat = beat_q;
    strobe = beat_full_q ? '0 : strobe_q;
    beat[8*Granule*place_q+:8*Granule] = unit_data[8*Granule*part_q+:8*Granule];
    strobe[Granule*place_q+:Granule] = '1;
  end
  always_ff @(posedge clk_i) begin
    if (beat_taken) begin
      beat_full_q <= 1'b0;
      strobe_q <= '0;
    end
    if (steps) begin
      beat_q <= beat;
      strobe_q <= strobe;
      beat_full_q <= last_place || last_granule;
      part_q <= last_part ? '0 : part_q + PartW'(1);
      place_q <= last_place ? '0 : place_q + PlaceW'(1);
      granules_q <= granules_q - RunW'(1);
    end
    if (state_q == Wait) begin
      part_q <= '0;
      place_q <= (BeatParts > 1) ? PlaceW'(addr_q >> $clog2(Granule)) : '0;
      granules_q <= bytes_q >> $clog2(Granule);
      strobe_q <= '0;
    end
    if (rst_i) beat_full_q <= 1'b0;
  end

  // Beats out, burst by burst.
  logic [8:0] owed_q;  // of the burst at work
  logic out_free;
  assign out_free   = !m_axi_wvalid_o || m_axi_wready_i;
  assign beat_taken = out_free && owed_q != '0 && beat_full_q && !hold_i;
  assign len_taken  = owed_q == '0 || (out_free && owed_q == 9'd1 && (beat_full_q || hold_i));
  assign all_sent   = granules_q == '0 && !beat_full_q && !m_axi_wvalid_o && outstanding_q == '0;
  always_ff @(posedge clk_i) begin
    if (out_free) begin
      m_axi_wvalid_o <= owed_q != '0 && (beat_full_q || hold_i);
      m_axi_wlast_o  <= owed_q == 9'd1;
      m_axi_wdata_o  <= beat_q;
      m_axi_wstrb_o  <= hold_i ? '0 : strobe_q;
      if (owed_q != '0 && (beat_full_q || hold_i)) owed_q <= owed_q - 9'd1;
    end
    if (len_taken) owed_q <= len_valid ? 9'(len) + 9'd1 : '0;
    if (rst_i) begin
      m_axi_wvalid_o <= 1'b0;
      owed_q <= '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (fetch_done_i && fetches_q != '0) fetches_q <= fetches_q - 5'd1;
    if (m_axi_bvalid_i && m_axi_bresp_i != 2'b00 && !failed_q) begin
      failed_q <= 1'b1;
      error_addr_q <= pending_addr;
    end
    unique case (state_q)
      Take: begin
        client_q <= client_i;
        tag_q <= job_i.tag;
        addr_q <= job_i.addr;
        bytes_q <= RunW'(job_i.act_units) * RunW'(Cols) + RunW'(job_i.cell_units) * RunW'(CellBytes);
        empty_q <= job_i.act_units == '0 && job_i.cell_units == '0;
        failed_q <= 1'b0;
        fetches_q <= fetches_i - 5'(fetch_done_i);
        if (job_valid_i && job_ready_o) state_q <= Wait;
      end
      Wait: begin
        if (fetches_q == '0) begin
          if (empty_q) state_q <= Done;
          else if (run_ready) state_q <= Run;
        end
      end
      Run: if (granules_q == '0) state_q <= Answers;
      Answers: if (all_sent) state_q <= Done;
      default: state_q <= Take;
    endcase
    if (rst_i) state_q <= Take;
  end

  logic unused;
  assign unused = &{1'b0, unit_room, pending_valid, job_i.op};  // never full; never empty when an answer comes; a store
endmodule
