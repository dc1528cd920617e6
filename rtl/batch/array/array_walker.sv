// SPDX-License-Identifier: Apache-2.0
// Walks segments: for each tile, each seat of the mask, each vector one step. Steps are made two stages before the one where they wait for their tile and for room,
// so neither the search for the next seat nor its address costs a clock. The next segment waits here.
module array_walker
  import seat_pkg::*;
#(
    parameter int unsigned AccVectors = 2,
    parameter int unsigned MinClocks = 16,  // of a segment, from its first step to the next one's
    parameter int unsigned IndexW = 5  // of an accumulator: seat * AccVectors + vector
) (
    input logic clk_i,
    input logic rst_i,

    // Segments; at least a seat and a tile.
    input  logic     seg_valid_i,
    output logic     seg_ready_o,
    input  segment_t seg_i,

    // Tiles: a tile is taken by its first step.
    input  logic tile_valid_i,
    output logic tile_ready_o,

    // Steps, all in the same clock.
    input  logic                room_i,         // for a sum
    output logic                act_en_o,
    output logic [SeatActW-1:0] act_addr_o,
    output logic                step_o,
    output logic                step_take_o,    // of its tile
    output logic                step_first_o,   // of its sum: the accumulator starts anew
    output logic                step_last_o,    // completes a sum
    output logic [  IndexW-1:0] step_index_o,
    output logic [   SeatW-1:0] step_seat_o,
    output logic [         1:0] step_vector_o,  // of the instruction
    output logic                step_ends_o,    // the segment

    // Counters.
    output logic active_o,
    output logic starved_o,
    output logic blocked_o
);
  localparam int unsigned WaitW = $clog2(MinClocks);

  function automatic logic [SeatW-1:0] lowest(input seats_t seats);
    logic [SeatW-1:0] seat;
    seat = '0;
    for (int s = int'(Seats) - 1; s >= 0; s--) if (seats[s]) seat = SeatW'(s);
    return seat;
  endfunction

  // Next segment.
  logic next_valid_q, load;
  segment_t next_q;

  assign seg_ready_o = !next_valid_q;
  always_ff @(posedge clk_i) begin
    if (seg_valid_i && seg_ready_o) next_q <= seg_i;
    if (rst_i) next_valid_q <= 1'b0;
    else if (seg_valid_i && seg_ready_o) next_valid_q <= 1'b1;
    else if (load) next_valid_q <= 1'b0;
  end

  // Present segment: what it repeats, and where it is.
  logic busy_q;
  logic [SeatW-1:0] first_seat_q;
  seats_t later_seats_q;  // all but the first
  logic [1:0] vectors_less_1_q, first_vector_q;
  logic [SeatActW-1:0] stride_q;
  logic [4:0] shift_q;

  logic [SeatW-1:0] seat_q;
  seats_t rest_q;  // seats after this one
  logic [1:0] vector_q;
  logic [15:0] tiles_left_q;  // after this one
  logic first_tile_q, first_of_tile_q;
  logic [SeatActW-1:0] tile_act_q;  // of this tile: vector 0 of seat 0
  logic [SeatActW-1:0] act_q;  // of this vector: seat 0

  logic make, last_vector, last_seat, last_tile, last_step;
  seats_t searched, searched_rest;
  logic [SeatW-1:0] found;
  assign last_vector = vector_q == vectors_less_1_q;
  assign last_seat = rest_q == '0;
  assign last_tile = tiles_left_q == '0;
  assign last_step = last_vector && last_seat && last_tile;
  assign load = next_valid_q && (!busy_q || (make && last_step));
  assign searched = load ? next_q.seats : rest_q;
  assign searched_rest = searched & (searched - 1'b1);
  assign found = lowest(searched);

  always_ff @(posedge clk_i) begin
    if (make) begin
      first_of_tile_q <= 1'b0;
      if (!last_vector) begin
        vector_q <= vector_q + 1'b1;
        act_q <= act_q + stride_q;
      end else begin
        vector_q <= '0;
        if (!last_seat) begin
          seat_q <= found;
          rest_q <= searched_rest;
          act_q  <= tile_act_q;
        end else begin
          seat_q <= first_seat_q;
          rest_q <= later_seats_q;
          act_q <= tile_act_q + 1'b1;
          tile_act_q <= tile_act_q + 1'b1;
          tiles_left_q <= tiles_left_q - 1'b1;
          first_tile_q <= 1'b0;
          first_of_tile_q <= 1'b1;
        end
      end
      if (last_step) busy_q <= 1'b0;
    end
    if (load) begin
      busy_q <= 1'b1;
      first_seat_q <= found;
      later_seats_q <= searched_rest;
      vectors_less_1_q <= next_q.vectors_less_1;
      first_vector_q <= next_q.first_vector;
      stride_q <= SeatActW'(next_q.source_stride);
      shift_q <= next_q.source_shift;
      seat_q <= found;
      rest_q <= searched_rest;
      vector_q <= '0;
      tiles_left_q <= next_q.col_tiles - 1'b1;
      first_tile_q <= 1'b1;
      first_of_tile_q <= 1'b1;
      tile_act_q <= next_q.source;
      act_q <= next_q.source;
    end
    if (rst_i) busy_q <= 1'b0;
  end

  // A step made, then with its address.
  typedef struct packed {
    logic take, first, last, starts, ends;
    logic [IndexW-1:0] index;
    logic [SeatW-1:0] seat;
    logic [1:0] vector;
  } step_t;

  logic made_valid_q, step_valid_q, pass, go;
  step_t made_q, step_q;
  logic [4:0] made_shift_q;
  logic [SeatActW-1:0] made_act_q, step_act_q;

  assign pass = made_valid_q && (!step_valid_q || go);
  assign make = busy_q && (!made_valid_q || pass);

  always_ff @(posedge clk_i) begin
    if (make) begin
      made_q <= '{
          take: first_of_tile_q,
          first: first_tile_q,
          last: last_tile,
          starts: first_of_tile_q && first_tile_q,
          ends: last_step,
          index: IndexW'(seat_q) * IndexW'(AccVectors) + IndexW'(vector_q),
          seat: seat_q,
          vector: first_vector_q + vector_q
      };
      made_shift_q <= shift_q;
      made_act_q <= act_q;
    end
    if (pass) begin
      step_q <= made_q;
      step_act_q <= made_act_q + (SeatActW'(made_q.seat) << made_shift_q);
    end
    if (make) made_valid_q <= 1'b1;
    else if (pass) made_valid_q <= 1'b0;
    if (pass) step_valid_q <= 1'b1;
    else if (go) step_valid_q <= 1'b0;
    if (rst_i) begin
      made_valid_q <= 1'b0;
      step_valid_q <= 1'b0;
    end
  end

  // The step goes when it can.
  logic [WaitW-1:0] wait_q;  // clocks until the next segment may start
  logic may;
  assign may = step_valid_q && (!step_q.last || room_i) && (!step_q.starts || wait_q == '0);
  assign go  = may && (!step_q.take || tile_valid_i);

  always_ff @(posedge clk_i) begin
    if (rst_i) wait_q <= '0;
    else if (go && step_q.starts) wait_q <= WaitW'(MinClocks - 1);
    else if (wait_q != '0) wait_q <= wait_q - 1'b1;
  end

  assign tile_ready_o = may && step_q.take;
  assign act_en_o = go;
  assign act_addr_o = step_act_q;
  assign step_o = go;
  assign step_take_o = step_q.take;
  assign step_first_o = step_q.first;
  assign step_last_o = step_q.last;
  assign step_index_o = step_q.index;
  assign step_seat_o = step_q.seat;
  assign step_vector_o = step_q.vector;
  assign step_ends_o = step_q.ends;

  assign active_o = go;
  assign starved_o = step_valid_q && step_q.take && !tile_valid_i;
  assign blocked_o = step_valid_q && !go && !starved_o;

  logic unused;
  assign unused = &{1'b0, next_q};

`ifdef FORMAL
  always_ff @(posedge clk_i) begin
    if (!rst_i && seg_valid_i && seg_ready_o) begin
      assert (seg_i.seats != '0 && seg_i.col_tiles != '0);
      assert (32'(seg_i.vectors_less_1) < AccVectors);
    end
  end
`endif  // FORMAL
endmodule
