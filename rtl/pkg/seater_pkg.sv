// SPDX-License-Identifier: Apache-2.0
// Types within the seater (docs/blocks/seater.md).

package seater_pkg;
  import gharial_pkg::*;
  import host_pkg::*;
  import seat_pkg::*;

  localparam int unsigned MarkW = 8;
  typedef logic [MarkW-1:0] mark_t;  // number of a batch, modulo more than there can be on their way

  // A batch that is to be seated: entries of a command.
  typedef struct packed {
    work_t work;  // first and result: of this batch
    logic [15:0] index;  // in the command, of its first entry
    logic [SeatW:0] count;
    logic last;  // of its command
    mark_t seat_mark;  // so many batches of the other kind are seated before (GREEDY's decode part: stored)
    mark_t store_mark;  // encode: so many decode batches are seated before it is stored
  } cut_t;

  // What a slot consists of in device memory: offsets in bytes, and counts of units.
  typedef struct packed {
    logic [15:0] enc_a_units,
        enc_lower_units, enc_upper_units, enc_c_units
    ;  // lower, upper: cells before and behind the banks
    logic [15:0] upper_unit;  // its first cell unit
    logic [15:0] bank_unit, bank_units;
    logic [1:0][31:0] bank_bytes;
    logic [31:0] upper_bytes;
    logic [15:0] pred_a_units, pred_c_units;
    logic [15:0] joint_pred_unit, joint_pred_units;
    logic [31:0] joint_pred_bytes;
  } layout_t;

  // A batch on a side, from its seating to its end.
  typedef struct packed {
    logic [WorkW-1:0] work;
    logic greedy;
    logic last;
    logic [15:0] index;
    mark_t store_mark;
    seats_t takes;  // seats whose slot is taken, and stored
    logic aborted;  // does not run
    failure_t failure;  // of one that was aborted
    logic [15:0] entry;  // at fault
  } seated_t;

  // Where a seat's state goes.
  typedef struct packed {
    logic [15:0] slot;
    logic [63:0] addr;
    logic fresh;  // encoder slot that was zero
    logic bank;
  } home_t;

  // Tag of a move: whose it is.
  typedef struct packed {
    logic [5:0] seat;
    logic decode;
    logic side;
  } move_tag_t;

  // Whether `count` has reached `mark`.
  function automatic logic reached(input mark_t count, input mark_t mark);
    mark_t ahead;
    ahead = count - mark;
    return !ahead[MarkW-1];
  endfunction

endpackage
