// SPDX-License-Identifier: Apache-2.0
// Where the profile looks into the machine with weights on chip. Part of a simulation, and of nothing else.

bind counters clock_profile u_clock_profile (
    .clk_i,
    .rst_i,
    .enable_i,
    .latch_i,
    .now_i(now)
);

bind engine onchip_profile u_onchip_profile (
    .clk_i,
    .rst_i,
    .taken_i(mat_valid && mat_ready),
    .tile_i(mat_job.tile),
    .left_i(u_matrix.u_walker.busy_q && u_matrix.u_walker.finish),
    .encode_held_i(u_sequencer.gen_thread[0].u_issue.held_q),
    .encode_step_i(u_sequencer.gen_thread[0].u_issue.step_q),
    .decode_held_i(u_sequencer.gen_thread[1].u_issue.held_q),
    .decode_step_i(u_sequencer.gen_thread[1].u_issue.step_q),
    .vector_i(res_valid && res_ready),
    .topk_idle_i(scan_ready),
    .aux_idle_i(aux_ready),
    .encode_idle_i(u_sequencer.encode_idle),
    .decode_i(u_sequencer.decode_busy),
    .state_i((act_re_i && act_re_ready_o) || (act_we_i && act_ready_o) || (cell_re_i && cell_re_ready_o) || (cell_we_i && cell_ready_o))
);
