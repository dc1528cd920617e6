// SPDX-License-Identifier: Apache-2.0
// Reports what array and other units of the batch machine do in each clock, for profiles of a simulation. Bound to batch_engine.
module batch_profile
  import seat_pkg::*;
  import thread_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    // The array: a segment comes, a segment's last step goes.
    input logic taken_i,
    input segment_t segment_i,
    input logic left_i,

    // What it would get next, the first that there is: head of the order, behind it, not in order yet.
    input logic head_valid_i,
    input logic behind_valid_i,
    input cut_t behind_i,
    input logic staged_valid_i,
    input cut_t staged_i,

    // Aux jobs of encode and decode thread that wait or are at work.
    input logic encode_aux_i,
    input logic decode_aux_i,
    input logic decode_joint_i,

    // Who is at work.
    input logic finish_i,
    input logic rank_idle_i,
    input logic aux_i,
    input logic encode_i,
    input logic decode_i,
    input logic fetch_idle_i,
    input logic store_idle_i,

    // Bytes in this clock.
    input logic [15:0] weight_bytes_i,
    input logic state_read_i,
    input logic state_write_i
);
  import "DPI-C" function int gharial_profile_on();
  import "DPI-C" function void gharial_profile_units(
    input int taken,
    input int left,
    input int waiting,
    input int at_work,
    input int weight_bytes,
    input int state_bytes,
    input int reset
  );
  localparam int unsigned PortBytes = gharial_config_pkg::PortBytes;

  // A tile, or -1: nothing, -2, -3: a LOOKUP of encode or decode thread, -4: a JOINT.
  function automatic int waiting();
    if (head_valid_i) return 32'(segment_i.tile);
    if (behind_valid_i) return 32'(behind_i.segment.tile);
    if (decode_aux_i) return decode_joint_i ? -4 : -3;
    if (encode_aux_i) return -2;
    if (staged_valid_i) return 32'(staged_i.segment.tile);
    return -1;
  endfunction

  always_ff @(posedge clk_i) begin
    if (gharial_profile_on() != 0) begin
      gharial_profile_units(taken_i ? 32'(segment_i.tile) : -1, 32'(left_i), waiting(), 32'({
                            !store_idle_i, !fetch_idle_i, decode_i, encode_i, aux_i, !rank_idle_i, finish_i}),
                            32'(weight_bytes_i), (32'(state_read_i) + 32'(state_write_i)) * PortBytes, 32'(rst_i));
    end
  end
endmodule
