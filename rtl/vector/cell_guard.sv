// SPDX-License-Identifier: Apache-2.0
// Tells whether the next CELL job has to wait, because cells that it reads may still be on their way from an earlier one.
//
// An LSTM's job never has to: it waited for the h of the earlier one. But cells are read and written in order whatever a program does.
// Known are the cells of the latest CELL job; where the one before it is not through either, the next one waits.
module cell_guard
  import gharial_pkg::*;
#(
    parameter int unsigned Clocks = 12  // from the last unit that writes a cell to the first that may read it
) (
    input logic clk_i,
    input logic rst_i,

    // The next job, and whether it begins after this clock.
    input logic     next_valid_i,
    input vec_job_t next_i,
    input logic     begin_i,

    input  logic cell_taken_i,  // a unit whose new c will be written was taken in this clock
    output logic wait_o         // from the clock after begin_i: its units may not be taken yet
);
  localparam int unsigned AgeW = $clog2(Clocks - 1);

  logic is_cell;
  logic [AgeW-1:0] left_q, older_left_q;  // clocks in which the latest, or an older, CELL job still matters
  logic [CellAddrW:0] written_q, written_end_q, read_q, read_end_q;
  logic apart_q, begun_q;
  logic [1:0] known_q;  // what has been compared is the next job

  assign is_cell = next_valid_i && next_i.post == PostCell;

  always_ff @(posedge clk_i) begin
    // Two clocks of comparing, while the job before has four units at least.
    read_q <= {1'b0, next_i.cell_source};
    read_end_q <= {1'b0, next_i.cell_source} + {1'b0, next_i.row_groups};
    apart_q <= read_q >= written_end_q || read_end_q <= written_q;
    known_q <= (begin_i || rst_i) ? '0 : {known_q[0], next_valid_i};

    if (begin_i && is_cell) begin
      written_q <= {1'b0, next_i.cell_destination};
      written_end_q <= {1'b0, next_i.cell_destination} + {1'b0, next_i.row_groups};
    end

    if (rst_i) left_q <= '0;
    else if (cell_taken_i) left_q <= AgeW'(Clocks - 2);
    else if (left_q != '0) left_q <= left_q - 1'b1;

    // What was the latest job's becomes the older one's, a clock after the beginning: it matters at the next one only.
    begun_q <= begin_i && is_cell && !rst_i;
    if (rst_i) older_left_q <= '0;
    else if (begun_q && left_q != '0) older_left_q <= left_q - 1'b1;
    else if (older_left_q != '0) older_left_q <= older_left_q - 1'b1;

    if (rst_i) wait_o <= 1'b0;
    else if (begin_i) begin
      wait_o <= is_cell && (cell_taken_i || left_q != '0) && !(known_q[1] && apart_q && older_left_q == '0);
    end else if (left_q == '0) wait_o <= 1'b0;
  end

  logic unused;
  assign unused = &{1'b0, next_i};  // most of it
endmodule
