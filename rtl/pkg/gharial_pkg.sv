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

endpackage
