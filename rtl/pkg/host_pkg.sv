// SPDX-License-Identifier: Apache-2.0
// Types of the host block: the fields of descriptors and entries (docs/isa.md, section 5).

package host_pkg;
  import gharial_pkg::*;

  // Flags of a descriptor.
  localparam int unsigned FlagPrediction = 0;
  localparam int unsigned FlagChecked = 1;
  localparam int unsigned FlagInterrupt = 2;
  localparam int unsigned FlagInPlace = 3;

  localparam logic [1:0] ModeTopK = 2'd0;
  localparam logic [1:0] ModeFuzzy = 2'd1;
  localparam logic [1:0] ModeAll = 2'd2;

  localparam logic [1:0] KindNone = 2'd0;
  localparam logic [1:0] KindToken = 2'd1;
  localparam logic [1:0] KindStart = 2'd2;

  localparam int unsigned MostK = 33;

  typedef logic [15:0][31:0] descriptor_t;
  typedef logic [3:0][31:0] entry_words_t;

  // A fault, with where it was seen.
  typedef struct packed {
    fault_e fault;
    unit_e unit;
    logic [31:0] detail;
  } failure_t;

  localparam failure_t NoFailure = '{fault: FaultNone, unit: UnitNone, detail: '0};

  function automatic logic on_streams(input logic [7:0] operation);
    return operation == CmdEncode || operation == CmdDecode || operation == CmdGreedy;
  endfunction

  function automatic logic on_slots(input logic [7:0] operation);
    return operation >= CmdReset && operation <= CmdRestore;
  endfunction

  // Whether bytes from an address on lie in the device memory.
  function automatic logic in_memory(input logic [63:0] address, input logic [31:0] bytes, input logic [63:0] size);
    return 65'(address) + 65'(bytes) <= 65'(size);
  endfunction

endpackage
