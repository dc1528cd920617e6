// SPDX-License-Identifier: Apache-2.0
// RESET, FREE, COPY, SAVE and RESTORE: walks the entries of a checked command while the pipeline is empty.
module slot_commands
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    input  logic               start_i,       // one clock; descriptor and header stay
    input  descriptor_t        descriptor_i,
    input  header_t            header_i,
    output logic               done_o,        // one clock
    output failure_t           failure_o,
    output logic        [15:0] index_o,       // entry in work; at done, the entry at fault

    output logic         get_o,
    input  logic         got_i,
    input  entry_words_t entry_i,

    // Words of a restore.
    output logic         read_valid_o,
    input  logic         read_ready_i,
    output read_t        read_o,
    input  logic         error_i,
    input  logic  [31:0] error_addr_i,

    // The slot engine.
    output logic      job_valid_o,
    input  logic      job_ready_i,
    output slot_job_t job_o,
    input  logic      job_done_i,
    output logic      job_abort_o,

    // The slot table: what becomes of a slot.
    input  logic        first_live_i,  // looked up for the entry's first slot
    input  logic        first_free_i,
    output logic        set_enc_o,
    output logic        set_pred_o,
    output logic [15:0] set_slot_o,
    output logic        set_live_o,
    output logic        set_ended_o
);
  typedef enum logic [2:0] {
    Idle,
    Get,
    Addresses,
    Request,
    Job,
    Move,
    Set,
    Next
  } state_e;

  state_e state_q;
  logic [7:0] operation;
  logic prediction_q, restores_q, copies_q, saves_q, frees_q;
  logic [15:0] count, index_q, act_units_q, cell_units_q;
  logic live_q, ended_q;
  failure_t failure_q;
  assign operation = descriptor_i[0][7:0];
  assign count = descriptor_i[0][31:16];
  always_ff @(posedge clk_i) begin  // the descriptor is there long before the start
    prediction_q <= descriptor_i[0][8+FlagPrediction];
    restores_q <= operation == CmdRestore;
    copies_q <= operation == CmdCopy;
    saves_q <= operation == CmdSave;
    frees_q <= operation == CmdFree;
    act_units_q <= prediction_q ? header_i.pred_a_units : header_i.enc_a_units;
    cell_units_q <= prediction_q ? header_i.pred_c_units : header_i.enc_c_units;
  end

  logic busy[2];
  logic [15:0] act[2], cells[2];
  for (genvar i = 0; i < 2; i++) begin : gen_address
    slot_address u_address (
        .clk_i,
        .rst_i,
        .start_i(state_q == Get && got_i),
        .slot_i(entry_i[i][15:0]),
        .act_base_i(16'(2 * ScratchUnits) + (prediction_q ? 16'(EncAUnits) : '0)),
        .act_units_i(act_units_q),
        .cell_base_i(prediction_q ? 16'(EncCUnits) : '0),
        .cell_units_i(cell_units_q),
        .busy_o(busy[i]),
        .act_o(act[i]),
        .cell_o(cells[i])
    );
  end

  // Where a slot is saved, and its words: known a clock after the entry.
  logic [63:0] addr_q;
  logic [26:0] words_q;
  always_ff @(posedge clk_i) begin
    addr_q  <= {descriptor_i[5], descriptor_i[4]} + 64'(entry_i[2]);
    words_q <= 27'(act_units_q) * 27'(Cols / 4) + 27'(cell_units_q) * 27'(Rows / 8);
  end

  assign index_o = index_q;
  assign failure_o = failure_q;
  assign get_o = (state_q == Idle && start_i && count != '0) || (state_q == Next && !done_o);
  assign done_o = state_q == Next && (index_q == count || failure_q.fault != FaultNone);
  assign read_valid_o = state_q == Request;
  assign read_o = '{addr: addr_q, words: words_q};
  assign job_valid_o = state_q == Job;
  assign job_abort_o = state_q == Move && error_i;
  always_comb begin
    job_o = '{
        op: SlotZero,
        act: act[0],
        act_units: act_units_q,
        cell_unit: cells[0],
        cell_units: cell_units_q,
        to_act: act[1],
        to_cell: cells[1],
        addr: addr_q
    };
    if (copies_q) job_o.op = SlotCopy;
    else if (saves_q) job_o.op = SlotSave;
    else if (restores_q) job_o.op = SlotRestore;
  end

  assign set_enc_o   = state_q == Set && !prediction_q && !saves_q;
  assign set_pred_o  = state_q == Set && prediction_q && !saves_q;
  assign set_slot_o  = copies_q ? entry_i[1][15:0] : entry_i[0][15:0];
  assign set_live_o  = copies_q ? live_q : !frees_q;
  assign set_ended_o = copies_q && ended_q;

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Idle: begin
        index_q   <= '0;
        failure_q <= NoFailure;
        if (start_i) state_q <= (count == '0) ? Next : Get;
      end
      Get: if (got_i) state_q <= Addresses;
      Addresses: begin
        live_q  <= first_live_i;
        ended_q <= !first_live_i && !first_free_i;
        if (!busy[0] && !busy[1]) state_q <= restores_q ? Request : Job;
      end
      Request: if (read_ready_i) state_q <= Job;
      Job: if (job_ready_i) state_q <= Move;
      Move: begin
        if (job_done_i) state_q <= Set;
        if (error_i) begin
          failure_q <= '{fault: FaultBusRead, unit: UnitMemory, detail: error_addr_i};
          state_q   <= Next;
        end
      end
      Set: begin
        index_q <= index_q + 16'd1;
        state_q <= Next;
      end
      default: state_q <= done_o ? Idle : Get;
    endcase
    if (rst_i) state_q <= Idle;
  end

  logic unused;
  assign unused = &{1'b0, descriptor_i, header_i, entry_i};  // fields of other commands and of other blocks
endmodule
