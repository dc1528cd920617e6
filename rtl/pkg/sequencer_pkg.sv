// SPDX-License-Identifier: Apache-2.0
// Types inside the sequencer, and the fields of an instruction (docs/isa.md, section 4).

package sequencer_pkg;
  import gharial_pkg::*;

  typedef enum logic [1:0] {
    SectionPredict = 2'd0,
    SectionEncode  = 2'd1,
    SectionJoint   = 2'd2
  } section_e;

  // Predicates.
  localparam logic [1:0] Always = 2'd0;
  localparam logic [1:0] More = 2'd1;
  localparam logic [1:0] AtMost = 2'd2;

  // Spaces of an activation operand.
  localparam logic [1:0] InScratch = 2'd0;
  localparam logic [1:0] InSource = 2'd1;
  localparam logic [1:0] InDestination = 2'd2;

  localparam logic [15:0] NoSecond = 16'hFFFF;

  // One run of a section for one entry; addresses physical.
  typedef struct packed {
    section_e section;
    logic [2:0] vectors;  // 0 outside section encode
    logic [ActAddrW-1:0] scratch;
    logic [ActAddrW-1:0] source_act, destination_act;
    logic [CellAddrW-1:0] source_cell, destination_cell;
    logic [CellAddrW-1:0] i16_cell;  // where I16 results start
    logic [CellAddrW-1:0] joint_enc, joint_pred;  // operands of JOINT
    logic [15:0] token;
    logic zero_token;  // the start of a sequence: zeros in place of an embedding
  } run_t;

  // A job of the aux unit.
  typedef struct packed {
    logic joint;  // else LOOKUP
    logic zero;  // LOOKUP: zeros
    logic [31:0] embed_unit;  // LOOKUP: first embedding unit
    logic [15:0] unit_count;  // LOOKUP: activation units; JOINT: cell units
    logic [CellAddrW-1:0] joint_enc, joint_pred;  // JOINT
    logic [3:0] shift;  // JOINT: zs
    logic [ActAddrW-1:0] destination;
  } aux_job_t;

  // An instruction's words and its fields.
  typedef logic [7:0][31:0] instr_t;

  function automatic logic [2:0] vectors_of(input instr_t w);
    return 3'(w[0][16:15]) + 3'd1;
  endfunction

  // Bits of the first and last masks that the instruction's vectors have.
  function automatic logic [3:0] mask_of(input logic [3:0] bits, input instr_t w);
    return bits & ~(4'b1110 << w[0][16:15]);
  endfunction

  // What a thread's fetch stage hands to its issue stage: an instruction whose predicate holds, or the end of the run.
  typedef struct packed {
    logic ends;  // the run ends here: no instruction
    logic is_last;  // the run ends with this instruction
    fault_e fault;  // the instruction cannot run; the run ends with it
    logic [15:0] index;  // instruction of the section, from 0
    logic [15:0] number;  // instruction of the code space
    instr_t instr;
    logic [31:0] embed_unit;  // LOOKUP
    run_t run;
  } step_t;

endpackage
