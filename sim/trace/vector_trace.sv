// SPDX-License-Identifier: Apache-2.0
// Reports what each unit of four rows becomes as it passes the vector unit, for traces of a simulation. Bound to vector_unit.
module vector_trace (
    input logic clk_i,

    input logic               y_valid_i,      // each unit, whatever becomes of it
    input logic signed [15:0] y_i       [4],
    input logic               c_valid_i,
    input logic signed [15:0] c_i,
    input logic               h_valid_i,
    input logic signed [ 7:0] h_i,
    input logic               i8_valid_i,
    input logic signed [ 7:0] i8_i      [4]
);
  import "DPI-C" function void gharial_trace_pre_activations(input longint four);
  import "DPI-C" function void gharial_trace_new_cell(input int c);
  import "DPI-C" function void gharial_trace_new_h(input int h);
  import "DPI-C" function void gharial_trace_int8_outputs(input int four);

  always_ff @(posedge clk_i) begin
    if (y_valid_i) gharial_trace_pre_activations({y_i[3], y_i[2], y_i[1], y_i[0]});
    if (c_valid_i) gharial_trace_new_cell(32'(c_i));
    if (h_valid_i) gharial_trace_new_h(32'(h_i));
    if (i8_valid_i) gharial_trace_int8_outputs({i8_i[3], i8_i[2], i8_i[1], i8_i[0]});
  end
endmodule
