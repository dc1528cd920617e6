// SPDX-License-Identifier: Apache-2.0
// RESET, FREE, COPY, SAVE and RESTORE of slots in device memory: works off the entries of an accepted command while nothing else is on its way.
//
// RESET and FREE, and a copy of a blank slot, move nothing; what is saved of a blank slot is zeros. All others move word by word through the host bus.
module slot_moves
  import gharial_pkg::*;
  import host_pkg::*;
  import seat_pkg::*;
  import slot_pkg::*;
#(
    parameter int unsigned Rows = gharial_config_pkg::Rows,
    parameter int unsigned Cols = gharial_config_pkg::Cols
) (
    input logic clk_i,
    input logic rst_i,

    input  logic            start_i,    // one clock; what follows stays until done
    input  listed_t         listed_i,
    input  logic     [63:0] base_i,     // that entries' offsets are added to
    input  header_t         header_i,
    input  places_t         places_i,
    output logic            busy_o,
    output logic            done_o,     // one clock
    output failure_t        failure_o,
    output logic     [15:0] index_o,    // of the entry at fault

    output logic                entry_valid_o,
    input  logic                entry_ready_i,
    output logic         [15:0] entry_index_o,
    input  logic                entry_got_i,
    input  entry_words_t        entry_i,

    output logic       slot_valid_o,
    input  logic       slot_ready_i,
    output slot_edit_t slot_o,
    input  logic       slot_told_i,
    input  slot_t      slot_i,

    // Words.
    output logic          read_valid_o,
    input  logic          read_ready_i,
    output read_t         read_o,
    input  logic          data_valid_i,
    output logic          data_ready_o,
    input  logic   [31:0] data_i,
    input  logic          error_i,
    input  logic   [31:0] error_addr_i,
    output logic          write_valid_o,
    input  logic          write_ready_i,
    output write_t        write_o,
    input  logic          writer_idle_i
);
  typedef enum logic [3:0] {
    Idle,
    Get,
    Got,
    Look,     // the first slot
    Looked,
    Address,
    Request,
    Move,
    Rest,     // all that was written is answered
    Set,
    SetTold,
    Next,
    Done
  } state_e;

  state_e state_q;
  entry_words_t entry_q;
  logic [15:0] index_q;
  logic resets_q, copies_q, saves_q, restores_q, moves_q, zeros_q;
  logic [26:0] words_q, left_q;
  logic [63:0] base, from_q, to_q, offset_addr_q;
  logic [31:0] stride;
  failure_t failure_q;
  slot_t first_q;
  always_ff @(posedge clk_i) begin  // the command is there long before the start
    resets_q <= listed_i.operation == CmdReset;
    copies_q <= listed_i.operation == CmdCopy;
    saves_q <= listed_i.operation == CmdSave;
    restores_q <= listed_i.operation == CmdRestore;
    if (listed_i.prediction)
      words_q <= 27'(header_i.pred_a_units) * 27'(Cols / 4) + 27'(header_i.pred_c_units) * 27'(Rows / 8);
    else words_q <= 27'(header_i.enc_a_units) * 27'(Cols / 4) + 27'(header_i.enc_c_units) * 27'(Rows / 8);
  end
  assign base   = listed_i.prediction ? places_i.pred_slots : places_i.enc_slots;
  assign stride = listed_i.prediction ? places_i.pred_stride : places_i.enc_stride;

  // Where the first slot and the second lie.
  logic [63:0] slot_addr_q[2], step_q;
  logic [15:0] bits_q[2];
  always_ff @(posedge clk_i) begin
    step_q <= step_q << 1;
    for (int i = 0; i < 2; i++) begin
      bits_q[i] <= bits_q[i] >> 1;
      if (bits_q[i][0]) slot_addr_q[i] <= slot_addr_q[i] + step_q;
    end
    if (state_q == Got) begin
      step_q <= 64'(stride);
      for (int i = 0; i < 2; i++) begin
        bits_q[i] <= entry_i[i][15:0];
        slot_addr_q[i] <= base;
      end
    end
    offset_addr_q <= base_i + 64'(entry_q[2]);
  end

  assign busy_o = state_q != Idle;
  assign done_o = state_q == Done;
  assign failure_o = failure_q;
  assign index_o = index_q;
  assign entry_valid_o = state_q == Get;
  assign entry_index_o = listed_i.first + index_q;
  assign read_valid_o = state_q == Request && moves_q && !zeros_q && words_q != '0;
  assign read_o = '{addr: from_q, words: words_q};
  assign data_ready_o = state_q == Move && write_ready_i;
  assign write_valid_o = state_q == Move && (zeros_q || data_valid_i);
  assign write_o = '{addr: to_q, data: zeros_q ? '0 : data_i};
  assign slot_valid_o = state_q == Look || (state_q == Set && !saves_q);
  always_comb begin
    slot_o = '0;
    slot_o.prediction = listed_i.prediction;
    slot_o.slot = (copies_q && state_q == Set) ? entry_q[1][15:0] : entry_q[0][15:0];
    if (state_q == Set) begin
      slot_o.clear = '1;
      slot_o.set.live = resets_q || restores_q || (copies_q && first_q.live);
      slot_o.set.ended = copies_q && first_q.ended;
      slot_o.set.blank = resets_q || (copies_q && first_q.blank);
    end
  end

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Idle: begin
        index_q   <= '0;
        failure_q <= NoFailure;
        if (start_i) state_q <= (listed_i.count == '0) ? Done : Get;
      end
      Get: if (entry_ready_i) state_q <= Got;
      Got: begin
        entry_q <= entry_i;
        if (entry_got_i) state_q <= Look;
      end
      Look: if (slot_ready_i) state_q <= Looked;
      Looked: begin
        first_q <= slot_i;
        if (slot_told_i) state_q <= Address;
      end
      Address: begin
        zeros_q <= saves_q && first_q.blank;
        moves_q <= restores_q || saves_q || (copies_q && !first_q.blank && entry_q[0][15:0] != entry_q[1][15:0]);
        from_q <= restores_q ? offset_addr_q : slot_addr_q[0];
        to_q <= saves_q ? offset_addr_q : restores_q ? slot_addr_q[0] : slot_addr_q[1];
        if (bits_q[0] == '0 && bits_q[1] == '0) state_q <= Request;
      end
      Request: begin
        left_q <= words_q;
        if (!moves_q || words_q == '0) state_q <= Set;
        else if (zeros_q || read_ready_i) state_q <= Move;
      end
      Move: begin
        if (write_valid_o && write_ready_i) begin
          to_q   <= to_q + 64'd4;
          left_q <= left_q - 27'd1;
          if (left_q == 27'd1) state_q <= Rest;
        end
        if (error_i) begin
          failure_q <= '{fault: FaultBusRead, unit: UnitMemory, detail: error_addr_i};
          state_q   <= Rest;
        end
      end
      Rest: if (writer_idle_i) state_q <= (failure_q.fault != FaultNone) ? Done : Set;
      Set: begin
        if (saves_q) state_q <= Next;
        else if (slot_ready_i) state_q <= SetTold;
      end
      SetTold: if (slot_told_i) state_q <= Next;
      Next: begin
        index_q <= index_q + 16'd1;
        state_q <= (index_q + 16'd1 == listed_i.count) ? Done : Get;
      end
      default: state_q <= Idle;
    endcase
    if (rst_i) state_q <= Idle;
  end

  logic unused;
  assign unused = &{1'b0, header_i, places_i, entry_q, first_q};  // fields of other blocks
endmodule
