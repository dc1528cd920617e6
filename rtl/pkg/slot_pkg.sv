// SPDX-License-Identifier: Apache-2.0
// What the batch machine's command block keeps of a slot, and what the entries of a command do to their slots (docs/blocks/command_block.md).
package slot_pkg;
  import gharial_pkg::*;
  import host_pkg::*;

  typedef struct packed {
    logic written;  // by an earlier entry of the command in check
    logic read;     // the same
    logic bank;     // of a busy encoder slot: the bank that is stored; the other one can be read
    logic busy;     // a store of it is on its way
    logic blank;    // to be read as zeros
    logic lost;     // free, since a command failed: whatever `live` and `ended` say
    logic ended;
    logic live;
  } slot_t;

  // Read a slot, then change some of it.
  typedef struct packed {
    logic prediction;
    logic [15:0] slot;
    slot_t clear;
    slot_t set;
  } slot_edit_t;

  // A command and its entries in the entry store.
  typedef struct packed {
    logic [7:0]  operation;
    logic        prediction;  // flag 0
    logic [15:0] first;
    logic [15:0] count;       // 0 if they are not there
  } listed_t;

  // A command on its way, as it is registered.
  typedef struct packed {
    logic [31:0] tag;
    logic irq;
    logic [63:0] clock;  // when its descriptor was fetched
    listed_t listed;
  } way_t;

  // Walks through a command's entries.
  typedef enum logic [2:0] {
    WalkCheck  = 3'd0,  // all that an entry can be refused for; entries that are not are marked
    WalkMark   = 3'd1,  // the second half of that, for one entry
    WalkAccept = 3'd2,  // slots become what the command makes them, marks go
    WalkUndo   = 3'd3,  // marks go
    WalkDrop   = 3'd4,  // destinations are lost
    WalkPurge  = 3'd5,  // and no longer busy
    WalkLook   = 3'd6,  // has a slot that it needs been lost?
    WalkRegain = 3'd7   // what it begins is not lost
  } walk_e;

  // Each entry has up to three slots: an encoder slot, a source, a destination. Slot commands have source and destination of either kind; for
  // those of encoders the first look is at the source too.
  typedef struct packed {
    logic valid;
    slot_edit_t edit;
  } plan_t;

  function automatic plan_t planned(input walk_e walk, input logic [7:0] operation, input logic prediction,
                                    input logic full_step, input logic [1:0] role, input entry_words_t entry);
    localparam slot_t Marks = '{written: 1'b1, read: 1'b1, default: 1'b0};
    localparam slot_t Life = '{lost: 1'b1, ended: 1'b1, live: 1'b1, default: 1'b0};
    logic greedy, decodes, encodes, slots, reset, no_joint, writes, reads, needs, begins;
    logic [1:0] kind;
    plan_t plan;
    greedy = operation == CmdGreedy;
    decodes = operation == CmdDecode;
    encodes = greedy || operation == CmdEncode;
    slots = on_slots(operation);
    reset = entry[0][16];
    kind = entry[0][22:21];
    no_joint = entry[0][23];
    plan = '0;
    {writes, reads, needs, begins} = '0;
    unique case (role)
      2'd0: begin
        plan.edit.slot = entry[0][15:0];
        writes = encodes;
        needs = (encodes && !reset) || (decodes && !no_joint);
        begins = encodes;
      end
      2'd1: begin
        plan.edit.slot = slots ? entry[0][15:0] : entry[1][15:0];
        plan.edit.prediction = !slots || prediction;
        reads = (decodes && kind == KindToken) || operation == CmdCopy || operation == CmdSave;
        needs = decodes && kind == KindToken;
      end
      default: begin
        plan.edit.slot = decodes ? entry[1][31:16] : entry[3][15:0];
        if (slots) plan.edit.slot = (operation == CmdCopy) ? entry[1][15:0] : entry[0][15:0];
        plan.edit.prediction = !slots || prediction;
        writes = greedy || decodes || (slots && operation != CmdSave);
        needs = (greedy && !reset) || (decodes && kind == KindNone);
        begins = greedy || (decodes && kind != KindNone);
      end
    endcase
    unique case (walk)
      WalkCheck: plan.valid = 1'b1;
      WalkMark: begin
        plan.valid = writes || reads;
        plan.edit.set.written = writes;
        plan.edit.set.read = reads;
      end
      WalkAccept: begin
        plan.valid = writes || reads;
        plan.edit.clear = begins ? (Marks | Life) : Marks;
        plan.edit.set.live = begins && (role != 2'd0 || full_step);
        plan.edit.set.ended = begins && role == 2'd0 && !full_step;
      end
      WalkUndo: begin
        plan.valid = writes || reads;
        plan.edit.clear = Marks;
      end
      WalkDrop: begin
        plan.valid = writes;
        plan.edit.set.lost = 1'b1;
      end
      WalkPurge: begin
        plan.valid = writes || reads;
        plan.edit.clear = Marks;
        plan.edit.clear.busy = writes;
        plan.edit.set.lost = writes;
      end
      WalkLook:  plan.valid = needs;
      default: begin
        plan.valid = begins;
        plan.edit.clear.lost = 1'b1;
      end
    endcase
    return plan;
  endfunction

endpackage
