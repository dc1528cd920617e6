// SPDX-License-Identifier: Apache-2.0
// Types of the batch machine (docs/batch.md).

package seat_pkg;
  import gharial_pkg::*;

  localparam int unsigned Seats = gharial_config_pkg::Batch;
  localparam int unsigned SeatW = (Seats > 1) ? $clog2(Seats) : 1;
  localparam int unsigned SeatActW = 20;  // activation unit of a seat
  localparam int unsigned SeatCellW = 20;  // cell unit of a seat

  typedef logic [Seats-1:0] seats_t;

  localparam int unsigned Works = 8;  // commands that may be on their way, a power of two
  localparam int unsigned WorkW = $clog2(Works);

  // Regions of the seat memories. An address is {region, seat, side, unit}: the region starts at a power of two, so that nothing has to be added or
  // compared to find it.
  typedef enum logic [1:0] {
    ActScratch = 2'd0,
    ActEnc = 2'd1,
    ActPred = 2'd2
  } act_region_e;
  typedef enum logic [1:0] {
    CellEnc   = 2'd0,
    CellPred  = 2'd1,
    CellJoint = 2'd2   // copy of a joint_enc bank
  } cell_region_e;

  // From so many words on a memory is one for UltraRAM, which is 4096 words deep; block RAM has 512 of the same width.
  localparam int unsigned UltraWords = 2048;

  // Log2 of a region's units, of one seat and side.
  localparam int unsigned ScratchW = $clog2(gharial_config_pkg::ScratchUnits);
  localparam int unsigned EncAW = $clog2(gharial_config_pkg::EncAUnits);
  localparam int unsigned PredAW = $clog2(gharial_config_pkg::PredAUnits);
  localparam int unsigned EncCW = $clog2(gharial_config_pkg::EncCUnits);
  localparam int unsigned PredCW = $clog2(gharial_config_pkg::PredCUnits);
  localparam int unsigned ActMostW = (ScratchW > EncAW) ? ((ScratchW > PredAW) ? ScratchW : PredAW) : ((EncAW > PredAW) ? EncAW : PredAW);
  localparam int unsigned CellMostW = (EncCW > PredCW) ? EncCW : PredCW;
  localparam int unsigned ActRegionW = SeatW + 1 + ActMostW;  // address bits below the region
  localparam int unsigned CellRegionW = SeatW + 1 + CellMostW;

  // By how much a seat's number is shifted.
  localparam logic [4:0] ScratchShift = 5'(ScratchW + 1);
  localparam logic [4:0] EncAShift = 5'(EncAW + 1);
  localparam logic [4:0] PredAShift = 5'(PredAW + 1);
  localparam logic [4:0] EncCShift = 5'(EncCW + 1);
  localparam logic [4:0] PredCShift = 5'(PredCW + 1);  // also of the joint_enc copy

  // Addresses of seat 0.
  function automatic logic [SeatActW-1:0] act_base(input act_region_e region, input logic side);
    logic [SeatActW-1:0] base;
    base = SeatActW'(region) << ActRegionW;
    unique case (region)
      ActScratch: base[ScratchW] = side;
      ActEnc: base[EncAW] = side;
      default: base[PredAW] = side;
    endcase
    return base;
  endfunction

  function automatic logic [SeatCellW-1:0] cell_base(input cell_region_e region, input logic side);
    logic [SeatCellW-1:0] base;
    base = SeatCellW'(region) << CellRegionW;
    if (region == CellEnc) base[EncCW] = side;
    else base[PredCW] = side;
    return base;
  endfunction

  function automatic logic [4:0] act_shift(input act_region_e region);
    return (region == ActScratch) ? ScratchShift : (region == ActEnc) ? EncAShift : PredAShift;
  endfunction

  function automatic logic [4:0] cell_shift(input cell_region_e region);
    return (region == CellEnc) ? EncCShift : PredCShift;
  endfunction

  // Address of a seat's unit.
  function automatic logic [SeatActW-1:0] act_place(input act_region_e region, input logic side,
                                                    input logic [SeatW-1:0] seat, input logic [15:0] unit_number);
    return act_base(region, side) + (SeatActW'(seat) << act_shift(region)) + SeatActW'(unit_number);
  endfunction

  function automatic logic [SeatCellW-1:0] cell_place(input cell_region_e region, input logic side,
                                                      input logic [SeatW-1:0] seat, input logic [15:0] unit_number);
    return cell_base(region, side) + (SeatCellW'(seat) << cell_shift(region)) + SeatCellW'(unit_number);
  endfunction

  // One row group of a MATVEC, for the seats of a batch. Addresses are those of seat 0; seat s adds s << shift.
  typedef struct packed {
    thread_e thread;
    logic ends;  // the last segment of its instruction
    seats_t seats;  // at least one
    logic [1:0] first_vector;  // of the instruction, done now
    logic [1:0] vectors_less_1;
    // Weights.
    logic [23:0] tile;  // the row group's first
    logic [15:0] col_tiles;  // at least 1
    // Activations of the first vector done now.
    logic [SeatActW-1:0] source;
    logic [15:0] source_stride;  // a vector
    logic [4:0] source_shift;
    // Sums, scales, biases: those of this row group and the first vector done now.
    logic [3:0] first;  // bits of the instruction's vectors
    logic [3:0] last;
    logic [15:0] sum_group;
    logic [15:0] sum_stride;  // a vector
    logic [15:0] scale_group;
    logic [15:0] bias_group;
    // Post-operation.
    post_e post;
    logic [15:0] group;  // of the instruction: its outputs follow those of the groups before
    logic [3:0] shift;  // qc of CELL, s of I8
    logic [3:0] qh;
    logic [6:0] i8_high;
    logic i8_signed;
    logic [SeatActW-1:0] destination;  // CELL, I8: of the instruction's first output and the first vector done now
    logic [15:0] destination_stride;  // a vector
    logic [4:0] destination_shift;
    logic second_valid;
    logic [SeatActW-1:0] second;  // of the instruction's first output, whichever the vector
    logic [4:0] second_shift;
    logic [SeatCellW-1:0] cell_unit;  // CELL: c of group 0; I16: first output, of the first vector done now (strides: destination_stride)
    logic [4:0] cell_shift;
  } segment_t;

  // A job of the batch aux unit, for the seats of a batch.
  typedef struct packed {
    thread_e thread;
    seats_t seats;
    logic joint;  // else LOOKUP
    logic row;  // LOOKUP: the seat's token's row (zeros for some), else a constant
    logic [31:0] embed_unit;  // LOOKUP: first embedding unit (of token 0)
    logic [15:0] unit_count;  // LOOKUP: activation units; JOINT: cell units
    logic [SeatCellW-1:0] joint_enc, joint_pred;  // JOINT
    logic [4:0] joint_enc_shift, joint_pred_shift;
    logic [3:0] shift;  // JOINT: zs
    logic [SeatActW-1:0] destination;
    logic [4:0] destination_shift;
  } seat_aux_job_t;

  // A job of the state mover: activation units, then cell units, from or to one address of the device memory. Without units it ends at once.
  typedef enum logic [1:0] {
    MoveFetch = 2'd0,
    MoveStore = 2'd1,
    MoveZero  = 2'd2
  } move_op_e;

  typedef struct packed {
    move_op_e op;
    logic [63:0] addr;  // a multiple of 4
    logic [SeatActW-1:0] act;
    logic [15:0] act_units;
    logic [SeatCellW-1:0] cell_unit;
    logic [15:0] cell_units;
    logic [7:0] tag;  // returned when it is done
  } move_job_t;

  // Entries of one command that go through a section together, from the seater to a thread of the batch sequencer. Seat s has entry index + s of
  // the command. Their state has been fetched, or is about to be: the thread waits for `fetched` before it releases what reads it.
  typedef struct packed {
    command_e operation;  // CmdEncode, CmdDecode or CmdGreedy
    logic [WorkW-1:0] work;  // its command's, which goes with its results
    logic side;
    logic [15:0] index;  // in the command, of seat 0's entry
    seats_t seats;  // taken, from 0 on
    logic [Seats-1:0][2:0] vectors;  // encode thread
    // Decode thread.
    seats_t predicts;  // section predict runs
    seats_t starts;  // with zeros in place of an embedding
    seats_t joints;  // section joint runs, and there is a result
    logic [Seats-1:0][15:0] tokens;
    logic [7:0] k;  // GREEDY: most symbols
    logic [1:0] mode;
    logic [2:0] named;
    logic [3:0][15:0] named_class;
    logic [15:0] temperature;
    logic [63:0] result;  // byte address of seat 0's result
    logic [31:0] result_stride;  // bytes
  } batch_t;

  // A job of the rank unit: the result of one seat, from its logits.
  typedef struct packed {
    logic [SeatW-1:0] seat;
    logic greedy;  // a token's two words, of the largest logit; else a result of DECODE
    logic [1:0] mode;  // DECODE: 0 top-k, 1 fuzzy top-k, 2 all logits
    logic [7:0] k;
    logic [2:0] named;
    logic [3:0][15:0] named_class;
    logic [15:0] temperature;
    logic [63:0] address;  // of the first word, bytes
  } rank_job_t;

  // How a thread ended with a batch.
  typedef struct packed {
    logic side;
    fault_e fault;
    unit_e unit;
    logic [31:0] detail;
    logic [15:0] entry;  // seat at fault
    logic [15:0] predictions;  // run for all seats, saturating
    logic [15:0] joints;
  } batch_done_t;

  // An accepted ENCODE, DECODE or GREEDY command of at least one entry, from the command block to the seater, in order. Slots are what the command
  // makes them already; what is left is to compute.
  typedef struct packed {
    logic [WorkW-1:0] work;  // its name, until its last end is told
    command_e operation;
    logic checked;  // features carry CRCs
    logic [15:0] first;  // of its entries, in the entry store; they follow one another modulo its size
    logic [15:0] count;
    logic [63:0] features;  // base
    logic [7:0] k;  // DECODE; GREEDY: most symbols
    logic [1:0] mode;
    logic [2:0] named;
    logic [3:0][15:0] named_class;
    logic [15:0] temperature;
    logic [63:0] result;  // byte address of entry 0's result
    logic [31:0] result_stride;  // bytes
  } work_t;

  // Ends of a command's entries, in any number and order; the last says that all there is to it has been done: results handed over, states stored and
  // answered, or given up.
  typedef struct packed {
    logic [WorkW-1:0] work;
    logic last;
    fault_e fault;
    unit_e unit;
    logic [31:0] detail;
    logic [15:0] entry;  // at fault
    logic [15:0] predictions;  // run since the command's end before
    logic [15:0] joints;
  } work_done_t;

  // What the slot table is asked to do with a slot, and what the slot was before.
  typedef enum logic [1:0] {
    SlotLook  = 2'd0,
    SlotTake  = 2'd1,  // a store of it is on its way: busy
    SlotLeave = 2'd2   // it has been stored, or given up: no longer busy, nor blank
  } slot_use_e;

  typedef struct packed {
    slot_use_e op;
    logic prediction;
    logic [15:0] slot;
    logic zeros;  // taken by an encoder step from zeros on: blank but for what is stored
    logic bank;  // and the bank that it stores
  } slot_ask_t;

  typedef struct packed {
    logic blank;  // to be read as zeros; of a busy encoder slot, the bank that is not stored
    logic busy;
    logic bank;   // that is stored
  } slot_told_t;

  // Where the program and its state lie in device memory, byte addresses, multiples of 64.
  typedef struct packed {
    logic [63:0] weights;
    logic [63:0] embedding;
    logic [63:0] enc_slots;    // slot s: enc_slots + s * enc_stride
    logic [63:0] pred_slots;
    logic [31:0] enc_stride;   // bytes
    logic [31:0] pred_stride;
  } places_t;

endpackage
