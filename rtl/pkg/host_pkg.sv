// SPDX-License-Identifier: Apache-2.0
// Types of the host block: the fields of descriptors and entries (docs/isa.md, section 5).

package host_pkg;
  import gharial_pkg::*;
  import gharial_config_pkg::*;

  // Flags of a descriptor.
  localparam int unsigned FlagPrediction = 0;
  localparam int unsigned FlagChecked = 1;
  localparam int unsigned FlagInterrupt = 2;
  localparam int unsigned FlagInPlace = 3;
  localparam int unsigned FlagUnchecked = 4;

  localparam logic [1:0] ModeTopK = 2'd0;
  localparam logic [1:0] ModeFuzzy = 2'd1;
  localparam logic [1:0] ModeAll = 2'd2;

  localparam logic [1:0] KindNone = 2'd0;
  localparam logic [1:0] KindToken = 2'd1;
  localparam logic [1:0] KindStart = 2'd2;

  localparam int unsigned MostK = 33;

  localparam int unsigned Spaces = 6;  // of a program
  localparam int unsigned TableBytes = 9216;  // all of that space

  typedef logic [15:0][31:0] descriptor_t;
  typedef logic [3:0][31:0] entry_words_t;

  // A fault, with where it was seen.
  typedef struct packed {
    fault_e fault;
    unit_e unit;
    logic [31:0] detail;
  } failure_t;

  // A command on its way: accepted or refused, not yet completed.
  typedef struct packed {
    logic [31:0] tag;
    logic irq;  // interrupt at completion
    logic [63:0] clock;  // when its descriptor was fetched
    logic [EncSlots-1:0] enc;  // destination slots, of an accepted one
    logic [PredSlots-1:0] pred;
    logic [EncSlots-1:0] enc_needed;  // ENCODE, DECODE, GREEDY: slots that must not be free at its end
    logic [PredSlots-1:0] pred_needed;
  } command_t;

  // A request for words of the device memory, and a word to be written there.
  typedef struct packed {
    logic [63:0] addr;   // a multiple of 4
    logic [26:0] words;  // at least 1
  } read_t;
  typedef struct packed {
    logic [63:0] addr;
    logic [31:0] data;
  } write_t;

  // A job of the slot engine: a slot, or activation units alone.
  typedef struct packed {
    slot_op_e op;
    logic [ActAddrW-1:0] act;  // first activation unit
    logic [15:0] act_units;
    logic [CellAddrW-1:0] cell_unit;  // first cell unit
    logic [15:0] cell_units;
    logic [ActAddrW-1:0] to_act;  // of a copy
    logic [CellAddrW-1:0] to_cell;
    logic [63:0] addr;  // of a save
  } slot_job_t;

  localparam failure_t NoFailure = '{fault: FaultNone, unit: UnitNone, detail: '0};

  function automatic logic on_streams(input logic [7:0] operation);
    return operation == CmdEncode || operation == CmdDecode || operation == CmdGreedy;
  endfunction

  function automatic logic on_slots(input logic [7:0] operation);
    return operation >= CmdReset && operation <= CmdRestore;
  endfunction

  // Whether bytes from an address on lie in the device memory.
  function automatic logic in_memory(input logic [64:0] address, input logic [31:0] bytes, input logic [63:0] size);
    return 66'(address) + 66'(bytes) <= 66'(size);
  endfunction

endpackage
