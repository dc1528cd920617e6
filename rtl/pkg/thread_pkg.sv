// SPDX-License-Identifier: Apache-2.0
// Types inside the batch sequencer (docs/blocks/batch_sequencer.md).

package thread_pkg;
  import gharial_pkg::*;
  import sequencer_pkg::*;
  import seat_pkg::*;

  // Instructions of a thread that have been put in order, and of those the ones that have retired: running counts. The two, and what an instruction
  // waits for, never lie half their range apart: a section has at most 255 instructions.
  localparam int unsigned MarkW = 10;
  typedef logic [MarkW-1:0] mark_t;

  // Whether so many have retired.
  function automatic logic reached(input mark_t retired, input mark_t mark);
    mark_t distance;
    distance = retired - mark;
    return !distance[MarkW-1];
  endfunction

  // One run of a section for seats of a batch.
  typedef struct packed {
    section_e section;
    logic side;
    seats_t seats;
    logic [Seats-1:0][2:0] vectors;  // 0 outside section encode
  } seat_run_t;

  // From a thread's fetch stage to its cutter: an instruction, dropped ones too, or the end of a run that has none.
  typedef struct packed {
    logic ends;  // the run ends here: no instruction
    logic is_first;
    logic is_last;  // the run ends with this instruction
    fault_e fault;  // the instruction cannot run; the run ends with it
    logic [7:0] index;  // instruction of the section, from 0
    logic [15:0] number;  // instruction of the code space
    instr_t instr;
    section_e section;
    logic side;
    seats_t seats;  // for which its predicate holds: none, and it is dropped
  } seat_step_t;

  // A segment, and what it waits for.
  typedef struct packed {
    segment_t segment;
    logic side;
    logic logit;  // it writes logits
    mark_t mark;  // of its thread
  } cut_t;

endpackage
