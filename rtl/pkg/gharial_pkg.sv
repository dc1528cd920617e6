// SPDX-License-Identifier: Apache-2.0
// Types that cross block borders. Encodings are those of docs/isa.md; blocks and their contracts: docs/architecture.md.

package gharial_pkg;

  // Post-operation of MATVEC.
  typedef enum logic [2:0] {
    PostNone  = 3'd0,
    PostCell  = 3'd1,
    PostI16   = 3'd2,
    PostI8    = 3'd3,
    PostLogit = 3'd4
  } post_e;

  // Instructions.
  typedef enum logic [7:0] {
    OpMatvec = 8'd1,
    OpLookup = 8'd2,
    OpJoint  = 8'd3
  } opcode_e;

  // Operations of a command descriptor.
  typedef enum logic [7:0] {
    CmdNop     = 8'd1,
    CmdLoad    = 8'd2,
    CmdStart   = 8'd3,
    CmdEncode  = 8'd16,
    CmdDecode  = 8'd17,
    CmdGreedy  = 8'd18,
    CmdReset   = 8'd32,
    CmdFree    = 8'd33,
    CmdCopy    = 8'd34,
    CmdSave    = 8'd35,
    CmdRestore = 8'd36
  } command_e;

  // Fault codes of completions and STATUS.
  typedef enum logic [7:0] {
    FaultNone        = 8'd0,
    FaultBadCommand  = 8'd1,
    FaultBadEntry    = 8'd2,
    FaultBadSlot     = 8'd3,
    FaultHazard      = 8'd4,
    FaultAddress     = 8'd5,
    FaultChecksum    = 8'd6,
    FaultNoProgram   = 8'd7,
    FaultBadProgram  = 8'd8,
    FaultBadOpcode   = 8'd9,
    FaultBusRead     = 8'd10,
    FaultBusWrite    = 8'd11,
    FaultRingOverrun = 8'd12,
    FaultWatchdog    = 8'd13
  } fault_e;

  // Units that a fault names.
  typedef enum logic [7:0] {
    UnitNone      = 8'd0,
    UnitHost      = 8'd1,
    UnitSequencer = 8'd2,
    UnitMatrix    = 8'd3,
    UnitVector    = 8'd4,
    UnitMemory    = 8'd5,
    UnitState     = 8'd6,
    UnitTopk      = 8'd7
  } unit_e;

  // Program spaces that LOAD fills.
  typedef enum logic [2:0] {
    SpaceCode      = 3'd0,
    SpaceWeights   = 3'd1,
    SpaceScales    = 3'd2,
    SpaceBiases    = 3'd3,
    SpaceTables    = 3'd4,
    SpaceEmbedding = 3'd5
  } space_e;

  // Threads of the sequencer: encode runs ahead of decode by one entry.
  typedef enum logic {
    ThreadEncode = 1'b0,
    ThreadDecode = 1'b1
  } thread_e;

  localparam int unsigned ActAddrW = 16;  // physical activation unit
  localparam int unsigned CellAddrW = 16;  // physical cell unit
  localparam int unsigned MaxVectors = 4;

  // What the matrix unit needs of a MATVEC, addresses physical.
  typedef struct packed {
    logic [23:0] tile;
    logic [15:0] row_groups;
    logic [15:0] col_tiles;
    logic [1:0] vectors_less_1;
    logic [ActAddrW-1:0] source;
    logic [ActAddrW-1:0] source_stride;
  } mat_job_t;

  // What the vector unit needs of the same MATVEC.
  typedef struct packed {
    thread_e thread;
    post_e post;
    logic [1:0] vectors_less_1;
    logic [3:0] first;
    logic [3:0] last;
    logic [15:0] row_groups;
    logic [15:0] sum_group;
    logic [15:0] scale_group;
    logic [15:0] bias_group;
    logic [3:0] shift;  // qc of CELL, s of I8
    logic [3:0] qh;
    logic [6:0] i8_high;
    logic i8_signed;
    logic [ActAddrW-1:0] destination;  // activation unit (CELL, I8)
    logic [ActAddrW-1:0] destination_stride;
    logic second_valid;
    logic [ActAddrW-1:0] second;
    logic [CellAddrW-1:0] cell_source;  // c of the source slot
    logic [CellAddrW-1:0] cell_destination;  // c of the destination slot; destination of I16
  } vec_job_t;

  // What all blocks need of the current program's header.
  typedef struct packed {
    logic [15:0] predict_first, predict_count;
    logic [15:0] encode_first, encode_count;
    logic [15:0] joint_first, joint_count;
    logic [15:0] feature_units;  // activation units a feature vector
    logic [2:0] vectors;  // feature vectors of a full step
    logic [15:0] feature_unit;  // scratch unit of the first
    logic [15:0] scratch_units;
    logic [15:0] enc_a_units, enc_c_units, pred_a_units, pred_c_units;
    logic [15:0] joint_enc_unit, joint_enc_units, joint_pred_unit, joint_pred_units;
    logic [15:0] classes, blank;
    logic [3:0] logit_bits;
    logic [15:0] sum_groups;
    logic [15:0] tokens;
    // Spaces in the units that instructions use.
    logic [23:0] tiles;
    logic [15:0] scale_groups, bias_groups;
    logic [31:0] embed_units;
  } header_t;

  // One entry of an ENCODE, DECODE or GREEDY command, checked, addresses physical: from the host block through the encode thread to the decode
  // thread. Whatever else ends a command comes the same way, as an entry with nothing to do (CmdNop) or with a fault, so that completions keep
  // the commands' order.
  typedef struct packed {
    command_e operation;
    logic last;  // of its command
    logic [15:0] index;  // in its command
    fault_e fault;  // nothing is done
    unit_e unit;
    logic [31:0] detail;
    // Encoder.
    logic scratch_bank;  // where its features lie
    logic [2:0] vectors;
    logic enc_reset;  // zero the encoder slot first
    logic [ActAddrW-1:0] enc_act;
    logic [CellAddrW-1:0] enc_cell;
    logic bank;
    // Prediction network.
    logic start;  // zero states and input (DECODE kind start, GREEDY with reset)
    logic token_valid;  // DECODE kind token
    logic [15:0] token;
    logic no_joint;
    logic [ActAddrW-1:0] source_act, destination_act;
    logic [CellAddrW-1:0] source_cell, destination_cell;
    // Results.
    logic [7:0] k;  // GREEDY: most symbols
    logic [1:0] mode;
    logic [2:0] named;
    logic [3:0][15:0] named_class;
    logic [15:0] temperature;
    logic [63:0] result;  // byte address
  } entry_t;

  // How an entry ended.
  typedef struct packed {
    logic last;
    logic [15:0] index;
    fault_e fault;
    unit_e unit;
    logic [31:0] detail;
    logic [15:0] predictions;
    logic [15:0] joints;
  } entry_done_t;

  // Work of the slot engine.
  typedef enum logic [1:0] {
    SlotZero    = 2'd0,
    SlotCopy    = 2'd1,
    SlotSave    = 2'd2,
    SlotRestore = 2'd3
  } slot_op_e;

endpackage
