// SPDX-License-Identifier: Apache-2.0
// Reads the features of an accepted command for their CRCs alone: whoever comes behind must see whether the command's slots are lost.
module feature_check
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
  import slot_pkg::*;
  import crc_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    input  logic            start_i,    // one clock; what follows stays until done
    input  listed_t         listed_i,   // at least one entry
    input  logic     [63:0] base_i,
    input  header_t         header_i,
    output logic            done_o,     // one clock
    output failure_t        failure_o,
    output logic     [15:0] index_o,    // of the entry at fault

    output logic                entry_valid_o,
    input  logic                entry_ready_i,
    output logic         [15:0] entry_index_o,
    input  logic                entry_got_i,
    input  entry_words_t        entry_i,

    output logic         read_valid_o,
    input  logic         read_ready_i,
    output read_t        read_o,
    input  logic         data_valid_i,
    input  logic  [31:0] data_i,
    input  logic         error_i,
    input  logic  [31:0] error_addr_i
);
  typedef enum logic [2:0] {
    Idle,
    Get,
    Got,
    Words,
    Request,
    Stream,
    Next,
    Done
  } state_e;

  state_e state_q;
  logic [15:0] index_q;
  logic [31:0] offset_q, wanted_q, crc_q;
  logic [ 2:0] vectors_q;
  logic [17:0] units_q;
  logic [26:0] left_q, words_q;
  logic [63:0] addr_q;
  failure_t failure_q;

  assign done_o = state_q == Done;
  assign failure_o = failure_q;
  assign index_o = index_q;
  assign entry_valid_o = state_q == Get;
  assign entry_index_o = listed_i.first + index_q;
  assign read_valid_o = state_q == Request;
  assign read_o = '{addr: addr_q, words: words_q};

  always_ff @(posedge clk_i) begin
    addr_q <= base_i + 64'(offset_q);
    units_q <= (vectors_q[2] ? 18'(header_i.feature_units) << 2 : vectors_q[0] ? 18'(header_i.feature_units) : '0) +
        (vectors_q[1] ? 18'(header_i.feature_units) << 1 : '0);
    words_q <= 27'(units_q) * 27'(Cols / 4);

    unique case (state_q)
      Idle: begin
        index_q   <= '0;
        failure_q <= NoFailure;
        if (start_i) state_q <= Get;
      end
      Get: if (entry_ready_i) state_q <= Got;
      Got: begin
        vectors_q <= entry_i[0][20:18];
        offset_q  <= entry_i[1];
        wanted_q  <= entry_i[2];
        left_q    <= '0;
        if (entry_got_i) state_q <= Words;
      end
      Words: begin
        left_q <= left_q + 27'd1;
        if (left_q == 27'd2) state_q <= Request;
      end
      Request: begin
        crc_q  <= CrcInit;
        left_q <= words_q;
        if (read_ready_i) state_q <= Stream;
      end
      Stream: begin
        if (data_valid_i) begin
          crc_q  <= crc_next(crc_q, data_i);
          left_q <= left_q - 27'd1;
          if (left_q == 27'd1) state_q <= Next;
        end
        if (error_i) begin
          failure_q <= '{fault: FaultBusRead, unit: UnitMemory, detail: error_addr_i};
          state_q   <= Done;
        end
      end
      Next: begin
        index_q <= index_q + 16'd1;
        state_q <= (index_q + 16'd1 == listed_i.count) ? Done : Get;
        if (~crc_q != wanted_q) begin
          failure_q <= '{fault: FaultChecksum, unit: UnitHost, detail: ~crc_q};
          index_q   <= index_q;
          state_q   <= Done;
        end
      end
      default: state_q <= Idle;
    endcase
    if (rst_i) state_q <= Idle;
  end

  logic unused;
  assign unused = &{1'b0, listed_i, header_i, entry_i};  // fields of other walks and of other blocks
endmodule
