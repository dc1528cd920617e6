// SPDX-License-Identifier: Apache-2.0
// Sends the entries of an accepted ENCODE, DECODE or GREEDY command to the sequencer, with physical addresses, features loaded into the free scratch bank.
module entry_sender
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
  import crc_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    input  logic        start_i,       // one clock; descriptor and header stay
    input  descriptor_t descriptor_i,
    input  header_t     header_i,
    output logic        done_o,        // one clock
    output logic        failed_o,      // at done: an entry had bad features

    // Entries.
    output logic                get_o,
    output logic         [15:0] index_o,
    input  logic                got_i,
    input  entry_words_t        entry_i,

    // Reading features.
    output logic         read_valid_o,
    input  logic         read_ready_i,
    output read_t        read_o,
    input  logic         data_taken_i,  // a word goes to the slot engine
    input  logic  [31:0] data_i,
    input  logic         error_i,
    input  logic  [31:0] error_addr_i,

    // The slot engine.
    output logic      job_valid_o,
    input  logic      job_ready_i,
    output slot_job_t job_o,
    input  logic      job_done_i,
    output logic      job_abort_o,  // its words will not come

    input  logic   features_free_i,
    output logic   entry_valid_o,
    input  logic   entry_ready_i,
    output entry_t entry_o
);
  typedef enum logic [3:0] {
    Idle,
    Get,
    Addresses,
    Room,
    Request,
    Load,
    Features,
    Pad,
    Padding,
    Send,
    Done
  } state_e;

  state_e state_q;
  logic [15:0] index_q, count;
  logic [7:0] operation;
  logic bank_q, failed_q;
  failure_t failure_q;
  logic [31:0] crc_q;
  logic [63:0] result_q;

  logic encodes, decodes, greedy, reset;
  logic [1:0] kind;
  logic [2:0] vectors, missing;
  assign operation = descriptor_i[0][7:0];
  assign count = descriptor_i[0][31:16];
  assign greedy = operation == CmdGreedy;
  assign decodes = operation == CmdDecode;
  assign encodes = greedy || operation == CmdEncode;
  assign reset = entry_i[0][16];
  assign kind = entry_i[0][22:21];
  assign vectors = entry_i[0][20:18];
  assign missing = header_i.vectors - vectors;

  function automatic logic [15:0] times(input logic [15:0] value, input logic [2:0] factor);
    return (factor[2] ? value << 2 : factor[0] ? value : '0) + (factor[1] ? value << 1 : '0);  // at most 4
  endfunction

  // Slots to addresses: encoder, source, destination.
  logic start_addresses, busy[3];
  logic [15:0] slot[3], act[3], cells[3];
  assign start_addresses = state_q == Get && got_i;
  assign slot[0] = entry_i[0][15:0];
  assign slot[1] = entry_i[1][15:0];
  assign slot[2] = decodes ? entry_i[1][31:16] : entry_i[3][15:0];
  for (genvar i = 0; i < 3; i++) begin : gen_address
    slot_address u_address (
        .clk_i,
        .rst_i,
        .start_i(start_addresses),
        .slot_i(slot[i]),
        .act_base_i(16'(i == 0 ? 2 * ScratchUnits : 2 * ScratchUnits + EncAUnits)),
        .act_units_i(i == 0 ? header_i.enc_a_units : header_i.pred_a_units),
        .cell_base_i(16'(i == 0 ? 0 : EncCUnits)),
        .cell_units_i(i == 0 ? header_i.enc_c_units : header_i.pred_c_units),
        .busy_o(busy[i]),
        .act_o(act[i]),
        .cell_o(cells[i])
    );
  end

  // By the entry, two clocks after it is there.
  logic [15:0] bank_start_q, loaded_units_q, pad_units_q, pad_start_q;
  logic [63:0] features_q;
  always_ff @(posedge clk_i) begin
    bank_start_q <= (bank_q ? 16'(ScratchUnits) : '0) + header_i.feature_unit;
    loaded_units_q <= times(header_i.feature_units, vectors);
    pad_units_q <= times(header_i.feature_units, missing);
    pad_start_q <= bank_start_q + loaded_units_q;
    features_q <= {descriptor_i[11], descriptor_i[10]} + 64'(entry_i[1]);
  end

  assign get_o = (state_q == Idle && start_i) || (state_q == Done && !done_o);
  assign index_o = index_q;
  assign done_o = state_q == Done && (index_q == count || failed_q);
  assign failed_o = failed_q;
  assign read_valid_o = state_q == Request;
  assign read_o = '{addr: features_q, words: 27'(loaded_units_q) * 27'(Cols / 4)};
  assign job_valid_o = state_q == Load || state_q == Pad;
  always_comb begin
    job_o = '0;
    job_o.op = (state_q == Pad) ? SlotZero : SlotRestore;
    job_o.act = (state_q == Pad) ? pad_start_q : bank_start_q;
    job_o.act_units = (state_q == Pad) ? pad_units_q : loaded_units_q;
  end
  assign job_abort_o = state_q == Features && error_i;

  logic checksum_wrong;
  assign checksum_wrong = descriptor_i[0][8+FlagChecked] && ~crc_q != entry_i[2];

  assign entry_valid_o = state_q == Send;
  assign entry_o = '{
          operation: command_e'(operation),
          last: index_q + 16'd1 == count || failed_q,
          index: index_q,
          fault: failure_q.fault,
          unit: failure_q.unit,
          detail: failure_q.detail,
          scratch_bank: bank_q,
          vectors: vectors,
          enc_reset: reset,
          enc_act: act[0],
          enc_cell: cells[0],
          bank: entry_i[0][17],
          start: greedy ? reset : kind == KindStart,
          token_valid: decodes && kind == KindToken,
          token: entry_i[2][15:0],
          no_joint: decodes && entry_i[0][23],
          source_act: act[1],
          destination_act: act[2],
          source_cell: cells[1],
          destination_cell: cells[2],
          k: descriptor_i[6][7:0],
          mode: descriptor_i[6][9:8],
          named: descriptor_i[6][12:10],
          named_class: {descriptor_i[8], descriptor_i[7]},
          temperature: descriptor_i[6][31:16],
          result: result_q
      };

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Idle: begin
        index_q   <= '0;
        failed_q  <= 1'b0;
        failure_q <= NoFailure;
        result_q  <= {descriptor_i[5], descriptor_i[4]};
        if (start_i) state_q <= Get;
      end
      Get: if (got_i) state_q <= Addresses;
      Addresses: begin
        if (!busy[0] && !busy[1] && !busy[2]) state_q <= encodes ? Room : Send;
      end
      Room: if (features_free_i) state_q <= Request;
      Request: begin
        crc_q <= CrcInit;
        if (read_ready_i) state_q <= Load;
      end
      Load: if (job_ready_i) state_q <= Features;
      Features: begin
        if (data_taken_i) crc_q <= crc_next(crc_q, data_i);
        if (error_i) begin
          failed_q  <= 1'b1;
          failure_q <= '{fault: FaultBusRead, unit: UnitMemory, detail: error_addr_i};
          state_q   <= Send;
        end else if (job_done_i) begin
          state_q <= (missing == '0) ? Send : Pad;
          if (checksum_wrong) begin
            failed_q  <= 1'b1;
            failure_q <= '{fault: FaultChecksum, unit: UnitHost, detail: ~crc_q};
            state_q   <= Send;
          end
        end
      end
      Pad: if (job_ready_i) state_q <= Padding;
      Padding: if (job_done_i) state_q <= Send;
      Send: begin
        if (entry_ready_i) begin
          if (encodes && !failed_q) bank_q <= ~bank_q;  // one that failed is not run: its bank is still free
          index_q  <= index_q + 16'd1;
          result_q <= result_q + 64'(descriptor_i[9]);
          state_q  <= Done;
        end
      end
      default: state_q <= done_o ? Idle : Get;
    endcase
    if (rst_i) begin
      state_q <= Idle;
      bank_q  <= 1'b0;
    end
  end

  logic unused;
  assign unused = &{1'b0, descriptor_i, header_i};  // fields of other commands and of other blocks
endmodule
