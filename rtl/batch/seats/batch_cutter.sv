// SPDX-License-Identifier: Apache-2.0
// Cuts commands into batches of at most Seats entries: for the encode thread, the decode thread, or one for each (GREEDY). Each batch carries what must have
// been seated before.
module batch_cutter
  import gharial_pkg::*;
  import seat_pkg::*;
  import seater_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    input  logic  work_valid_i,
    output logic  work_ready_o,
    input  work_t work_i,

    output logic encode_valid_o,
    input  logic encode_ready_i,
    output cut_t encode_o,
    output logic decode_valid_o,
    input  logic decode_ready_i,
    output cut_t decode_o,
    output logic idle_o
);
  localparam int unsigned Depth = 4;

  work_t work_q;
  logic [15:0] left_q, index_q;
  mark_t encodes_q, decodes_q, decode_mark_q;  // cut so far; decode batches up to the last DECODE
  logic busy_q, encodes, decodes, whole, cut, encode_room, decode_room;
  logic [SeatW:0] count;
  cut_t cut_here, encode_cut, decode_cut;

  assign work_ready_o = !busy_q;
  assign encodes = work_q.operation != CmdDecode;
  assign decodes = work_q.operation != CmdEncode;
  assign whole = 32'(left_q) > Seats;
  assign count = whole ? (SeatW + 1)'(Seats) : (SeatW + 1)'(left_q);
  assign cut = busy_q && encode_room && decode_room;
  assign idle_o = !busy_q && !encode_valid_o && !decode_valid_o;

  always_comb begin
    cut_here = '{work: work_q, index: index_q, count: count, last: !whole, seat_mark: '0, store_mark: decodes_q};
    encode_cut = cut_here;
    encode_cut.seat_mark = decode_mark_q;
    decode_cut = cut_here;
    decode_cut.seat_mark = encodes_q + mark_t'(encodes);
  end

  small_fifo #(
      .Width($bits(cut_t)),
      .Depth(Depth)
  ) u_encodes (
      .clk_i,
      .rst_i,
      .push_valid_i(cut && encodes),
      .push_ready_o(encode_room),
      .push_data_i (encode_cut),
      .pop_valid_o (encode_valid_o),
      .pop_ready_i (encode_ready_i),
      .pop_data_o  (encode_o)
  );
  small_fifo #(
      .Width($bits(cut_t)),
      .Depth(Depth)
  ) u_decodes (
      .clk_i,
      .rst_i,
      .push_valid_i(cut && decodes),
      .push_ready_o(decode_room),
      .push_data_i (decode_cut),
      .pop_valid_o (decode_valid_o),
      .pop_ready_i (decode_ready_i),
      .pop_data_o  (decode_o)
  );

  always_ff @(posedge clk_i) begin
    if (work_ready_o) begin
      work_q  <= work_i;
      left_q  <= work_i.count;
      index_q <= '0;
      busy_q  <= work_valid_i;
    end
    if (cut) begin
      left_q <= left_q - 16'(count);
      index_q <= index_q + 16'(count);
      work_q.first <= work_q.first + 16'(count);
      work_q.result <= work_q.result + 64'(work_q.result_stride) * 64'(Seats);
      if (encodes) encodes_q <= encodes_q + mark_t'(1);
      if (decodes) decodes_q <= decodes_q + mark_t'(1);
      if (!encodes) decode_mark_q <= decodes_q + mark_t'(1);
      busy_q <= whole;
    end
    if (rst_i) begin
      busy_q <= 1'b0;
      encodes_q <= '0;
      decodes_q <= '0;
      decode_mark_q <= '0;
    end
  end
endmodule
