// SPDX-License-Identifier: Apache-2.0
// Reports where the features of an entry lie as section encode begins, for traces of a simulation. Bound to thread_fetch.
module encode_trace #(
    parameter int unsigned Cols = 8
) (
    input logic clk_i,

    input logic begins_i,
    input sequencer_pkg::run_t run_i,
    input gharial_pkg::header_t header_i
);
  import "DPI-C" function void gharial_trace_encode_begins(
    input int byte_address,
    input int vectors,
    input int bytes
  );

  always_ff @(posedge clk_i) begin
    if (begins_i && run_i.section == sequencer_pkg::SectionEncode) begin
      gharial_trace_encode_begins((32'(run_i.scratch) + 32'(header_i.feature_unit)) * Cols, 32'(run_i.vectors),
                                  32'(header_i.feature_units) * Cols);
    end
  end
endmodule
