// SPDX-License-Identifier: Apache-2.0
// Where the profile looks into the machine with weights in memory. Part of a simulation, and of nothing else.

bind counters clock_profile u_clock_profile (
    .clk_i,
    .rst_i,
    .enable_i,
    .latch_i,
    .now_i(now)
);

bind batch_engine batch_profile u_batch_profile (
    .clk_i,
    .rst_i,
    .taken_i(array_valid && array_ready),
    .segment_i(segment),
    .left_i(u_array.step.valid && u_array.ends),
    .head_valid_i(u_sequencer.u_order.head_valid_q),
    .behind_valid_i(u_sequencer.u_order.out_valid),
    .behind_i(u_sequencer.u_order.out),
    .staged_valid_i(u_sequencer.u_order.staged_valid_q),
    .staged_i(u_sequencer.u_order.staged_q),
    .encode_aux_i(u_sequencer.aux_waits[0]),
    .decode_aux_i(u_sequencer.aux_waits[1]),
    .decode_joint_i(u_sequencer.aux_job[1].joint),
    .finish_i(res_valid && res_ready),
    .rank_idle_i(u_sequencer.ranks_idle),
    .aux_i(u_sequencer.aux_busy_q),
    .encode_i(u_sequencer.busy[0]),
    .decode_i(u_sequencer.busy[1]),
    .fetch_idle_i(u_seats.u_mover.fetch_idle),
    .store_idle_i(u_seats.u_mover.store_idle),
    .weight_bytes_i(weight_bytes),
    .state_read_i(m_axi_state_rvalid_i && m_axi_state_rready_o),
    .state_write_i(m_axi_state_wvalid_o && m_axi_state_wready_i)
);
