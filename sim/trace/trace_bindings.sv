// SPDX-License-Identifier: Apache-2.0
// Where the modules of this folder look into the design. Part of a simulation that is to be traced, and of nothing else.

bind thread_issue instruction_trace u_instruction_trace (
    .clk_i,
    .rst_i,
    .section_i(step_q.run.section),
    .index_i(step_q.index),
    .issued_i(push),
    .job_i(vec_job_o),
    .aux_issued_i(aux_valid_o && aux_ready_i),
    .aux_job_i(aux_job_o)
);

bind thread_fetch encode_trace #(
    .Cols(Cols)
) u_encode_trace (
    .clk_i,
    .begins_i(run_valid_i && run_ready_o),
    .run_i,
    .header_i
);

bind vector_unit vector_trace u_vector_trace (
    .clk_i,
    .y_valid_i(valid_q[OutputAt]),
    .y_i(y10),
    .c_valid_i(valid_q[NewCellAt] && is_cell21),
    .c_i(c21),
    .h_valid_i(valid_q[NewHAt] && out30.is_cell),
    .h_i(h30),
    .i8_valid_i(u_activation_writer.i8_q),
    .i8_i(i8_31)
);

bind activation_memory activation_trace #(
    .Cols (Cols),
    .AddrW(gharial_pkg::ActAddrW)
) u_activation_trace (
    .clk_i,
    .aux_we_i (aux_we_i && aux_ready_o),
    .aux_addr_i,
    .aux_data_i,
    .aux_mask_i,
    .host_we_i(host_we_i && host_ready_o),
    .host_addr_i,
    .host_data_i
);

bind topk_unit topk_trace u_topk_trace (
    .clk_i,
    .max_valid_i(max_valid_o),
    .temperature_i(scan_temperature_i),
    .logit_bits_i,
    .taken_i(taken),
    .done_i(done_o),
    .lse_i(lse_o),
    .load_valid_i,
    .load_addr_i,
    .load_data_i
);
