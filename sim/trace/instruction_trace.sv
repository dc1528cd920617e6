// SPDX-License-Identifier: Apache-2.0
// Reports instructions as a thread issues them, for traces of a simulation. Bound to thread_issue.
module instruction_trace (
    input logic clk_i,
    input logic rst_i,

    input logic [1:0] section_i,  // of the instruction
    input logic [15:0] index_i,  // in its section
    input logic issued_i,  // matrix and vector unit have taken it
    input gharial_pkg::vec_job_t job_i,
    input logic aux_issued_i,
    input sequencer_pkg::aux_job_t aux_job_i
);
  import "DPI-C" function void gharial_trace_reset();
  import "DPI-C" function void gharial_trace_issued(
    input int section,
    input int instruction,
    input int post,
    input int last,
    input int vectors,
    input int groups
  );
  import "DPI-C" function void gharial_trace_aux_issued(
    input int section,
    input int instruction,
    input int joint,
    input int cell_units,
    input int destination
  );

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      gharial_trace_reset();
    end else begin
      if (issued_i) begin
        gharial_trace_issued(32'(section_i), 32'(index_i), 32'(job_i.post), 32'(job_i.last),
                             32'(job_i.vectors_less_1) + 1, 32'(job_i.row_groups));
      end
      if (aux_issued_i) begin
        gharial_trace_aux_issued(32'(section_i), 32'(index_i), 32'(aux_job_i.joint), 32'(aux_job_i.unit_count),
                                 32'(aux_job_i.destination));
      end
    end
  end
endmodule
