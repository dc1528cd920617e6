// SPDX-License-Identifier: Apache-2.0
// The vector unit's side of the activation memory: packs h into activation units and writes each to one or two places; packs and writes I8.
//
// Timing, with h of a unit in clock n: an activation unit that is complete with it is written in n + 1, and again to its second place in
// n + 2. I8 of a unit comes in n + 1 and is written in n + 2. The three never meet, since four units at least go into a job's
// first activation unit of h; for the same reason I8 is packed in the register that holds a unit for its second place.
module activation_writer
  import gharial_pkg::*;
#(
    parameter int unsigned Cols  = 8,
    parameter int unsigned LaneW = $clog2(Cols)  // derived
) (
    input logic clk_i,
    input logic rst_i,

    output logic                act_we_o,
    output logic [ActAddrW-1:0] act_waddr_o,
    output logic [  8*Cols-1:0] act_wdata_o,
    output logic [    Cols-1:0] act_wmask_o,

    // Clock n.
    input logic                       h_valid_i,
    input logic                       i8_valid_i,
    input logic                       last_output_i,   // an activation unit of h is written even if it is not full
    input logic        [   LaneW-1:0] lane_i,          // first byte within the activation unit
    input logic        [ActAddrW-1:0] target_i,
    input logic                       second_valid_i,
    input logic        [ActAddrW-1:0] second_i,
    input logic signed [         7:0] h_i,

    // Clock n + 1.
    input logic signed [7:0] i8_i[4]
);
  localparam logic [LaneW-1:0] LastByte = '1;

  logic full_q, again_q, i8_q, i8_full_q, second_valid_q;
  logic [Cols-1:0] mask_q, again_mask_q;
  logic [8*Cols-1:0] word_q, again_word_q;
  logic [LaneW-1:0] lane_q;
  logic [ActAddrW-1:0] target_q, second_q, again_target_q;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      {full_q, again_q, i8_q, i8_full_q} <= '0;
      mask_q <= '0;
    end else begin
      full_q <= h_valid_i && (lane_i == LastByte || last_output_i);
      again_q <= full_q && second_valid_q;
      i8_q <= i8_valid_i;
      i8_full_q <= i8_q && (lane_q | LaneW'(3)) == LastByte;
      // Begins anew when a unit is written.
      mask_q <= (full_q ? '0 : mask_q) | (Cols'(h_valid_i) << lane_i);
    end

    target_q <= target_i;
    second_valid_q <= second_valid_i;
    second_q <= second_i;
    lane_q <= lane_i;
    if (h_valid_i) word_q[8*lane_i+:8] <= h_i;

    again_target_q <= i8_q ? target_q : second_q;
    if (full_q) begin
      again_word_q <= word_q;
      again_mask_q <= mask_q;
    end else if (i8_q) begin
      again_word_q[8*lane_q+:32] <= {i8_i[3], i8_i[2], i8_i[1], i8_i[0]};
      again_mask_q <= '1;
    end
  end

  assign act_we_o = full_q || again_q || i8_full_q;
  assign act_waddr_o = full_q ? target_q : again_target_q;
  assign act_wdata_o = full_q ? word_q : again_word_q;
  assign act_wmask_o = full_q ? mask_q : again_mask_q;

`ifdef FORMAL
  always_ff @(posedge clk_i) begin
    if (!rst_i) a_one : assert ($onehot0({full_q, again_q, i8_full_q}));
  end
`endif  // FORMAL
endmodule
