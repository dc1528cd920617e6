// SPDX-License-Identifier: Apache-2.0
// LOAD and START: brings chunks of a program to the memories of its spaces, and makes a complete program whose header is right the current one.
//
// A chunk is read twice, for its CRC and then for its words: one that arrives damaged changes nothing, wherever it begins and ends.
//
// Checks and their order: docs/isa.md, sections 4 to 6. Fields of the descriptor stay until done.
module program_loader
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
  import crc_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    input  logic          abort_i,     // soft reset: give the command up
    input  logic          load_i,      // one clock each
    input  logic          start_i,
    input  logic          in_place_i,  // flag 3
    input  logic   [63:0] address_i,
    input  logic   [31:0] offset_i,
    input  logic   [28:0] bytes_i,
    input  logic   [ 2:0] space_i,
    input  logic   [31:0] crc_i,
    input  logic   [63:0] mem_size_i,
    output logic          done_o,      // one clock
    output fault_e        fault_o,     // until the next command
    output unit_e         unit_o,
    output logic   [31:0] detail_o,

    // Reading the chunk.
    output logic        read_valid_o,
    input  logic        read_ready_i,
    output logic [26:0] read_words_o,
    input  logic        data_valid_i,
    input  logic [31:0] data_i,
    input  logic        error_i,
    input  logic [31:0] error_addr_i,

    // To the memories.
    output logic          load_valid_o,
    output space_e        load_space_o,
    output logic   [26:0] load_addr_o,   // word of the space
    output logic   [31:0] load_data_o,

    // The current program.
    output logic           valid_o,
    output logic           started_o,     // one clock: a new one, all slots free
    output logic    [31:0] program_id_o,
    output header_t        header_o,
    output logic    [15:0] enc_slots_o,
    output logic    [15:0] pred_slots_o
);
  localparam int unsigned Capacity[Spaces] = '{CodeBytes, WeightBytes, ScaleBytes, BiasBytes, TableBytes, EmbedBytes};

  typedef enum logic [3:0] {
    Idle,
    LoadSums,
    LoadCompare,
    LoadFault,
    LoadJudge,
    Request,
    Stream,
    LoadCrc,
    LoadEnd,
    Header,
    Done
  } state_e;

  state_e state_q;
  logic [31:0] loaded_q[Spaces];
  logic [31:0] crc_q, at_q, fault_detail_q;
  logic crc_wrong_q;  // as it was a clock before
  logic good_q;  // the chunk's CRC is right: this time its words are written
  logic [26:0] left_q;
  logic last_q;  // one word is left
  fault_e fault_q;
  unit_e unit_q;

  assign fault_o  = fault_q;
  assign unit_o   = unit_q;
  assign detail_o = fault_detail_q;
  assign done_o   = state_q == Done;

  // LOAD's own checks, in order.
  logic [31:0] capacity_q, there_q;
  logic [32:0] offset_end_q;
  logic [64:0] chunk_end_q;
  logic bad_offset_q, bad_bytes_q, bad_address_q;
  always_ff @(posedge clk_i) begin
    for (int s = 0; s < int'(Spaces); s++) begin
      if (32'(space_i) == 32'(s)) begin
        capacity_q <= Capacity[s];
        there_q <= loaded_q[s];
      end
    end
    offset_end_q  <= 33'(offset_i) + 33'(bytes_i);
    chunk_end_q   <= 65'(address_i) + 65'(bytes_i);
    bad_offset_q  <= (offset_i != '0 && offset_i != there_q) || offset_i[1:0] != '0;
    bad_bytes_q   <= bytes_i[1:0] != '0 || offset_end_q > 33'(capacity_q);
    bad_address_q <= address_i[1:0] != '0 || chunk_end_q > 65'(mem_size_i);
  end

  fault_e load_fault, load_fault_q;
  logic [31:0] load_detail, load_detail_q;
  always_ff @(posedge clk_i) begin
    load_fault_q  <= load_fault;
    load_detail_q <= load_detail;
  end
  always_comb begin
    load_fault  = FaultBadCommand;
    load_detail = 32'd13;
    if (32'(space_i) >= Spaces) load_detail = 32'd13;
    else if (in_place_i) load_detail = 32'd0;
    else if (bad_offset_q) load_detail = 32'd12;
    else if (bad_bytes_q) load_detail = 32'd13;
    else if (bad_address_q) begin
      load_fault  = FaultAddress;
      load_detail = address_i[31:0];
    end else load_fault = FaultNone;
  end

  // The header's words, kept as they pass.
  logic header_re, check_start, check_done, check_wrong;
  logic [31:0] header_word;
  logic [5:0] header_addr, check_word;
  ram_1r1w #(
      .Width(32),
      .Words(64)
  ) u_header (
      .clk_i,
      .we_i(load_valid_o && load_space_o == SpaceCode && load_addr_o < 27'd64),
      .waddr_i(load_addr_o[5:0]),
      .wdata_i(load_data_o),
      .re_i(header_re),
      .raddr_i(header_addr),
      .rdata_o(header_word)
  );

  assign check_start = state_q == Idle && start_i;
  header_check u_check (
      .clk_i,
      .rst_i,
      .abort_i,
      .start_i(check_start),
      .loaded_i(loaded_q),
      .done_o(check_done),
      .wrong_o(check_wrong),
      .word_o(check_word),
      .re_o(header_re),
      .raddr_o(header_addr),
      .word_i(header_word),
      .program_id_o,
      .header_o,
      .enc_slots_o,
      .pred_slots_o
  );

  assign read_valid_o = state_q == Request;
  assign read_words_o = bytes_i[28:2];

  always_ff @(posedge clk_i) begin
    started_o <= 1'b0;
    load_valid_o <= state_q == Stream && good_q && data_valid_i;
    load_space_o <= space_e'(space_i);
    load_addr_o <= at_q[28:2];
    load_data_o <= data_i;
    crc_wrong_q <= ~crc_q != crc_i;
    last_q <= left_q == (data_valid_i ? 27'd2 : 27'd1);  // the first word comes later than a clock after the request

    unique case (state_q)
      Idle: begin
        if (load_i || start_i) begin
          fault_q <= FaultNone;
          unit_q  <= UnitNone;
        end
        crc_q <= CrcInit;
        if (load_i) state_q <= LoadSums;
        else if (start_i) state_q <= Header;
      end
      LoadSums: state_q <= LoadCompare;
      LoadCompare: state_q <= LoadFault;
      LoadFault: state_q <= LoadJudge;
      LoadJudge: begin
        good_q <= 1'b0;
        if (load_fault_q != FaultNone) begin
          fault_q <= load_fault_q;
          unit_q <= UnitHost;
          fault_detail_q <= load_detail_q;
          state_q <= Done;
        end else begin
          valid_o <= 1'b0;
          state_q <= (bytes_i == '0) ? LoadEnd : Request;
        end
        at_q <= offset_i;
      end
      Request: begin
        crc_q  <= CrcInit;
        at_q   <= offset_i;
        left_q <= bytes_i[28:2];
        if (read_ready_i) state_q <= Stream;
      end
      Stream: begin
        if (data_valid_i) begin
          crc_q  <= crc_next(crc_q, data_i);
          at_q   <= at_q + 32'd4;
          left_q <= left_q - 27'd1;
          if (last_q) state_q <= LoadCrc;
        end
        if (error_i) begin
          fault_q <= FaultBusRead;
          unit_q <= UnitMemory;
          fault_detail_q <= error_addr_i;
          state_q <= Done;
        end
      end
      LoadCrc: state_q <= LoadEnd;
      LoadEnd: begin
        state_q <= Done;
        if (crc_wrong_q) begin
          fault_q <= FaultChecksum;
          unit_q <= UnitHost;
          fault_detail_q <= ~crc_q;
        end else begin
          // A space that is being written holds nothing that counts until the chunk is whole.
          good_q <= 1'b1;
          for (int s = 0; s < int'(Spaces); s++) begin
            if (32'(space_i) == 32'(s)) loaded_q[s] <= (good_q || bytes_i == '0) ? at_q : '0;
          end
          if (!good_q && bytes_i != '0) state_q <= Request;
        end
      end
      Header: begin
        if (check_done) begin
          state_q <= Done;
          if (check_wrong) begin
            fault_q <= FaultBadProgram;
            unit_q <= UnitHost;
            fault_detail_q <= 32'(check_word);
          end else begin
            valid_o   <= 1'b1;
            started_o <= 1'b1;
          end
        end
      end
      default: state_q <= Idle;
    endcase

    if (abort_i) state_q <= Idle;
    if (rst_i) begin
      state_q <= Idle;
      valid_o <= 1'b0;
      load_valid_o <= 1'b0;
      for (int s = 0; s < int'(Spaces); s++) loaded_q[s] <= '0;
    end
  end
endmodule
