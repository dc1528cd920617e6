// SPDX-License-Identifier: Apache-2.0
// Tells whether the next CELL segment has to wait, because cells that it reads may still be on their way from an earlier one.
//
// An LSTM's segment never has to: it waited for the h of the earlier step. But cells are read and written in order whatever a program does.
// Segments use the same cells where they name the same cell of seat 0. Known is the latest CELL segment's; the ones before it are
// always waited for.
module cell_watch
  import seat_pkg::*;
#(
    parameter int unsigned Clocks = 13  // from the last slice that writes a cell to the first that may read it
) (
    input logic clk_i,
    input logic rst_i,

    // The next segment, and whether it begins after this clock.
    input logic                 next_valid_i,
    input logic                 next_is_cell_i,
    input logic [SeatCellW-1:0] next_cell_i,     // of seat 0
    input logic                 begin_i,

    input  logic cell_taken_i,  // a slice whose new c will be written was taken in this clock
    output logic wait_o         // from the clock after begin_i: its slices may not be taken yet
);
  localparam int unsigned AgeW = $clog2(Clocks);

  logic is_cell, apart_q, known_q;
  logic [AgeW-1:0] left_q, older_left_q;  // clocks in which the latest, or an older, CELL segment still matters
  logic [AgeW-1:0] wait_q;
  logic [SeatCellW-1:0] latest_q;

  assign is_cell = next_valid_i && next_is_cell_i;

  always_ff @(posedge clk_i) begin
    // Compared in the clock before it begins, if it is there by then and the one before has two slices at least.
    apart_q <= next_cell_i != latest_q;
    known_q <= next_valid_i && !begin_i && !rst_i;

    if (begin_i && is_cell) latest_q <= next_cell_i;

    if (rst_i) left_q <= '0;
    else if (cell_taken_i) left_q <= AgeW'(Clocks - 2);
    else if (left_q != '0) left_q <= left_q - 1'b1;

    if (rst_i) older_left_q <= '0;
    else if (begin_i && is_cell && cell_taken_i) older_left_q <= AgeW'(Clocks - 2);
    else if (begin_i && is_cell && left_q != '0) older_left_q <= left_q - 1'b1;
    else if (older_left_q != '0) older_left_q <= older_left_q - 1'b1;

    if (rst_i) wait_q <= '0;
    else if (begin_i) begin
      if (!is_cell) wait_q <= '0;
      else if (known_q && apart_q) wait_q <= older_left_q;
      else wait_q <= cell_taken_i ? AgeW'(Clocks - 1) : left_q;
    end else if (wait_q != '0) wait_q <= wait_q - 1'b1;
  end

  assign wait_o = wait_q != '0;
endmodule
