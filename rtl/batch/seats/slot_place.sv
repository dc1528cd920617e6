// SPDX-License-Identifier: Apache-2.0
// Byte address of a slot in device memory: base + slot * stride, by shift and add.
module slot_place
  import seat_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    input  places_t        places_i,
    input  logic           start_i,
    input  logic           prediction_i,
    input  logic    [15:0] slot_i,
    output logic           busy_o,
    output logic    [63:0] addr_o
);
  logic [15:0] left_q;
  logic [47:0] step_q;
  assign busy_o = left_q != '0;

  always_ff @(posedge clk_i) begin
    if (left_q[0]) addr_o <= addr_o + 64'(step_q);
    step_q <= step_q << 1;
    left_q <= left_q >> 1;
    if (start_i) begin
      left_q <= slot_i;
      addr_o <= prediction_i ? places_i.pred_slots : places_i.enc_slots;
      step_q <= 48'(prediction_i ? places_i.pred_stride : places_i.enc_stride);
    end
    if (rst_i) left_q <= '0;
  end

  logic unused;
  assign unused = &{1'b0, places_i};  // weights, embedding
endmodule
