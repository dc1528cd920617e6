// SPDX-License-Identifier: Apache-2.0
// The seater: from accepted commands to batches of seats, and back to the ends of commands (docs/blocks/seater.md).
module seater
  import gharial_pkg::*;
  import host_pkg::*;
  import seat_pkg::*;
  import seater_pkg::*;
#(
    parameter int unsigned Rows = gharial_config_pkg::Rows,
    parameter int unsigned Cols = gharial_config_pkg::Cols
) (
    input logic clk_i,
    input logic rst_i,

    input header_t header_i,
    input places_t places_i,

    // The command block.
    input  logic                work_valid_i,
    output logic                work_ready_o,
    input  work_t               work_i,
    output logic                entry_valid_o,
    input  logic                entry_ready_i,
    output logic         [15:0] entry_index_o,
    input  logic                entry_got_i,        // a clock after it was taken, or later
    input  entry_words_t        entry_i,
    output logic                slot_valid_o,
    input  logic                slot_ready_i,
    output slot_ask_t           slot_o,
    input  logic                slot_got_i,
    input  slot_told_t          slot_i,
    output logic                feature_valid_o,
    input  logic                feature_ready_i,
    output read_t               feature_o,
    input  logic                data_valid_i,
    output logic                data_ready_o,
    input  logic         [31:0] data_i,
    input  logic                data_error_i,
    input  logic         [31:0] data_error_addr_i,
    output logic                done_valid_o,
    input  logic                done_ready_i,
    output work_done_t          done_o,

    // Activations: the feature loader.
    output logic                act_we_o,
    input  logic                act_ready_i,
    output logic [SeatActW-1:0] act_waddr_o,
    output logic [  8*Cols-1:0] act_wdata_o,

    // The state mover; ends are those of the seater's jobs.
    output logic             job_valid_o,
    input  logic             job_ready_i,
    output move_job_t        job_o,
    input  logic             fetch_done_i,
    input  logic      [ 7:0] fetch_tag_i,
    input  logic             fetch_failed_i,
    input  logic      [31:0] fetch_error_addr_i,
    input  logic             store_done_i,
    input  logic      [ 7:0] store_tag_i,
    input  logic             store_failed_i,
    input  logic      [31:0] store_error_addr_i,

    // The threads: encode, decode.
    output logic        [1:0]      batch_valid_o,
    input  logic        [1:0]      batch_ready_i,
    output batch_t                 batch_o       [2],
    output logic        [1:0][1:0] fetched_o,          // thread, side
    input  logic        [1:0]      thread_valid_i,
    output logic        [1:0]      thread_ready_o,
    input  batch_done_t            thread_i      [2],

    output logic idle_o
);

  if (Seats > 64) begin : gen_check
    $error("%m: a move's tag has 6 bits for its seat");
  end

  layout_t layout;
  seat_layout #(
      .Rows(Rows),
      .Cols(Cols)
  ) u_layout (
      .clk_i,
      .header_i,
      .layout_o(layout)
  );

  // Batches of either kind, and how far either seater is.
  logic encode_cut_valid, encode_cut_ready, decode_cut_valid, decode_cut_ready, cutter_idle;
  cut_t encode_cut, decode_cut;
  mark_t encodes_q, encodes_ended_q, decodes_q;
  logic [1:0] seated, ended, fails, seater_idle, keeper_idle;
  logic [Works-1:0] failed_q;
  work_done_t ends[2];
  seated_t put_seated[2];
  logic [1:0] put;

  batch_cutter u_cutter (
      .clk_i,
      .rst_i,
      .work_valid_i,
      .work_ready_o,
      .work_i,
      .encode_valid_o(encode_cut_valid),
      .encode_ready_i(encode_cut_ready),
      .encode_o(encode_cut),
      .decode_valid_o(decode_cut_valid),
      .decode_ready_i(decode_cut_ready),
      .decode_o(decode_cut),
      .idle_o(cutter_idle)
  );

  always_ff @(posedge clk_i) begin
    encodes_q <= encodes_q + mark_t'(seated[0]);
    encodes_ended_q <= encodes_ended_q + mark_t'(ended[0]);
    decodes_q <= decodes_q + mark_t'(seated[1]);
    if (work_valid_i && work_ready_o) failed_q[work_i.work] <= 1'b0;
    for (int unsigned t = 0; t < 2; t++) begin
      if (fails[t]) failed_q[ends[t].work] <= 1'b1;
      if (put[t] && put_seated[t].failure.fault != FaultNone) failed_q[put_seated[t].work] <= 1'b1;
    end
    if (rst_i) begin
      encodes_q <= '0;
      encodes_ended_q <= '0;
      decodes_q <= '0;
      failed_q <= '0;
    end
  end

  // Who asks for entries: the two seaters; for slots: also the two keepers.
  logic [1:0] entry_valid, entry_ready, entry_got;
  logic [1:0][15:0] entry_index;
  ask_arbiter #(
      .Clients(2),
      .Width  (16)
  ) u_entries (
      .clk_i,
      .rst_i,
      .valid_i(entry_valid),
      .ready_o(entry_ready),
      .ask_i  (entry_index),
      .got_o  (entry_got),
      .valid_o(entry_valid_o),
      .ready_i(entry_ready_i),
      .ask_o  (entry_index_o),
      .got_i  (entry_got_i)
  );

  logic [3:0] slot_valid, slot_ready, slot_got;  // keepers, encode seater, decode seater
  slot_ask_t [3:0] slot_ask;
  ask_arbiter #(
      .Clients(4),
      .Width  ($bits(slot_ask_t))
  ) u_slots (
      .clk_i,
      .rst_i,
      .valid_i(slot_valid),
      .ready_o(slot_ready),
      .ask_i  (slot_ask),
      .got_o  (slot_got),
      .valid_o(slot_valid_o),
      .ready_i(slot_ready_i),
      .ask_o  (slot_o),
      .got_i  (slot_got_i)
  );

  // Moves: decode first, as a token waits for it.
  logic [1:0] fetch_valid, fetch_ready, store_valid, store_ready;
  move_job_t fetch_job[2], store_job[2];
  always_comb begin
    {fetch_ready, store_ready} = '0;
    job_valid_o = fetch_valid != '0 || store_valid != '0;
    if (fetch_valid[1]) begin
      job_o = fetch_job[1];
      fetch_ready[1] = job_ready_i;
    end else if (store_valid[1]) begin
      job_o = store_job[1];
      store_ready[1] = job_ready_i;
    end else if (fetch_valid[0]) begin
      job_o = fetch_job[0];
      fetch_ready[0] = job_ready_i;
    end else begin
      job_o = store_job[0];
      store_ready[0] = job_ready_i;
    end
  end

  // Features.
  logic load, load_checked, loaded;
  logic [63:0] load_addr;
  logic [15:0] load_units, load_pad;
  logic [SeatActW-1:0] load_target;
  logic [31:0] load_crc;
  failure_t load_failure;
  feature_loader #(
      .Cols(Cols)
  ) u_features (
      .clk_i,
      .rst_i,
      .start_i(load),
      .addr_i(load_addr),
      .units_i(load_units),
      .pad_i(load_pad),
      .target_i(load_target),
      .checked_i(load_checked),
      .crc_i(load_crc),
      .done_o(loaded),
      .failure_o(load_failure),
      .read_valid_o(feature_valid_o),
      .read_ready_i(feature_ready_i),
      .read_o(feature_o),
      .data_valid_i,
      .data_ready_o,
      .data_i,
      .error_i(data_error_i),
      .error_addr_i(data_error_addr_i),
      .act_we_o,
      .act_ready_i,
      .act_waddr_o,
      .act_wdata_o
  );

  // The two threads.
  logic [1:0] side, free, moving, home_we;
  logic [SeatW-1:0] home_seat[2];
  home_t home[2];

  encode_seater u_encode (
      .clk_i,
      .rst_i,
      .header_i,
      .places_i,
      .layout_i(layout),
      .cut_valid_i(encode_cut_valid),
      .cut_ready_o(encode_cut_ready),
      .cut_i(encode_cut),
      .failed_i(failed_q),
      .decodes_i(decodes_q),
      .load_o(load),
      .load_addr_o(load_addr),
      .load_units_o(load_units),
      .load_pad_o(load_pad),
      .load_target_o(load_target),
      .load_checked_o(load_checked),
      .load_crc_o(load_crc),
      .loaded_i(loaded),
      .load_failure_i(load_failure),
      .seated_o(seated[0]),
      .idle_o(seater_idle[0]),
      .entry_valid_o(entry_valid[0]),
      .entry_ready_i(entry_ready[0]),
      .entry_index_o(entry_index[0]),
      .entry_got_i(entry_got[0]),
      .entry_i,
      .slot_valid_o(slot_valid[2]),
      .slot_ready_i(slot_ready[2]),
      .slot_o(slot_ask[2]),
      .slot_got_i(slot_got[2]),
      .slot_i,
      .job_valid_o(fetch_valid[0]),
      .job_ready_i(fetch_ready[0]),
      .job_o(fetch_job[0]),
      .moving_i(moving[0]),
      .side_o(side[0]),
      .free_i(free[0]),
      .home_we_o(home_we[0]),
      .home_seat_o(home_seat[0]),
      .home_o(home[0]),
      .put_o(put[0]),
      .put_seated_o(put_seated[0]),
      .batch_valid_o(batch_valid_o[0]),
      .batch_ready_i(batch_ready_i[0]),
      .batch_o(batch_o[0])
  );

  decode_seater u_decode (
      .clk_i,
      .rst_i,
      .places_i,
      .layout_i(layout),
      .cut_valid_i(decode_cut_valid),
      .cut_ready_o(decode_cut_ready),
      .cut_i(decode_cut),
      .failed_i(failed_q),
      .encodes_i(encodes_q),
      .encodes_ended_i(encodes_ended_q),
      .seated_o(seated[1]),
      .idle_o(seater_idle[1]),
      .entry_valid_o(entry_valid[1]),
      .entry_ready_i(entry_ready[1]),
      .entry_index_o(entry_index[1]),
      .entry_got_i(entry_got[1]),
      .entry_i,
      .slot_valid_o(slot_valid[3]),
      .slot_ready_i(slot_ready[3]),
      .slot_o(slot_ask[3]),
      .slot_got_i(slot_got[3]),
      .slot_i,
      .job_valid_o(fetch_valid[1]),
      .job_ready_i(fetch_ready[1]),
      .job_o(fetch_job[1]),
      .moving_i(moving[1]),
      .side_o(side[1]),
      .free_i(free[1]),
      .home_we_o(home_we[1]),
      .home_seat_o(home_seat[1]),
      .home_o(home[1]),
      .put_o(put[1]),
      .put_seated_o(put_seated[1]),
      .batch_valid_o(batch_valid_o[1]),
      .batch_ready_i(batch_ready_i[1]),
      .batch_o(batch_o[1])
  );

  // Ends wait in a register, one at a time.
  logic [1:0] end_valid, end_ready;
  assign end_ready[0] = !done_valid_o;
  assign end_ready[1] = !done_valid_o && !end_valid[0];
  always_ff @(posedge clk_i) begin
    if (!done_valid_o) begin
      done_valid_o <= end_valid != '0;
      done_o <= end_valid[0] ? ends[0] : ends[1];
    end else if (done_ready_i) done_valid_o <= 1'b0;
    if (rst_i) done_valid_o <= 1'b0;
  end

  for (genvar t = 0; t < 2; t++) begin : gen_thread
    side_keeper #(
        .Decode(t == 1)
    ) u_keeper (
        .clk_i,
        .rst_i,
        .layout_i(layout),
        .side_i(side[t]),
        .free_o(free[t]),
        .moving_o(moving[t]),
        .job_taken_i(fetch_valid[t] && fetch_ready[t]),
        .home_we_i(home_we[t]),
        .home_seat_i(home_seat[t]),
        .home_i(home[t]),
        .put_i(put[t]),
        .put_seated_i(put_seated[t]),
        .fetched_o(fetched_o[t]),
        .done_valid_i(thread_valid_i[t]),
        .done_ready_o(thread_ready_o[t]),
        .done_i(thread_i[t]),
        .seated_i(decodes_q),
        .job_valid_o(store_valid[t]),
        .job_ready_i(store_ready[t]),
        .job_o(store_job[t]),
        .fetch_done_i,
        .fetch_tag_i(move_tag_t'(fetch_tag_i)),
        .fetch_failed_i,
        .fetch_addr_i(fetch_error_addr_i),
        .store_done_i,
        .store_tag_i(move_tag_t'(store_tag_i)),
        .store_failed_i,
        .store_addr_i(store_error_addr_i),
        .slot_valid_o(slot_valid[t]),
        .slot_ready_i(slot_ready[t]),
        .slot_o(slot_ask[t]),
        .slot_got_i(slot_got[t]),
        .end_valid_o(end_valid[t]),
        .end_ready_i(end_ready[t]),
        .end_o(ends[t]),
        .fail_o(fails[t]),
        .ended_o(ended[t]),
        .idle_o(keeper_idle[t])
    );
  end

  logic unused;
  assign unused = ended[1];

  assign idle_o = cutter_idle && seater_idle == '1 && keeper_idle == '1 && !done_valid_o;
endmodule
