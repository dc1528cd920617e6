// SPDX-License-Identifier: Apache-2.0
// Reports what matrix unit and other units of the machine with weights on chip do in each clock, for profiles of a simulation. Bound to engine.
module onchip_profile
  import gharial_pkg::*;
  import sequencer_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    // The matrix unit: a job comes, a job is over.
    input logic taken_i,
    input logic [23:0] tile_i,
    input logic left_i,

    // Instructions that the threads have in hand.
    input logic  encode_held_i,
    input step_t encode_step_i,
    input logic  decode_held_i,
    input step_t decode_step_i,

    // Who is at work.
    input logic vector_i,
    input logic topk_idle_i,
    input logic aux_idle_i,
    input logic encode_idle_i,
    input logic decode_i,
    input logic state_i
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

  // A tile, or -1: nothing, -2, -3: a LOOKUP of encode or decode thread, -4: a JOINT.
  function automatic int place(input instr_t instr, input int lookup);
    if (instr[0][7:0] == OpMatvec) return 32'(instr[1][23:0]);
    return (instr[0][7:0] == OpJoint) ? -4 : lookup;
  endfunction

  function automatic int waiting();
    if (decode_held_i && !decode_step_i.ends) return place(decode_step_i.instr, -3);
    if (encode_held_i && !encode_step_i.ends) return place(encode_step_i.instr, -2);
    return -1;
  endfunction

  always_ff @(posedge clk_i) begin
    if (gharial_profile_on() != 0) begin
      gharial_profile_units(taken_i ? 32'(tile_i) : -1, 32'(left_i), waiting(), 32'({
                            state_i, decode_i, !encode_idle_i, !aux_idle_i, !topk_idle_i, vector_i}), 0, 0, 32'(rst_i));
    end
  end
endmodule
