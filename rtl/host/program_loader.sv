// SPDX-License-Identifier: Apache-2.0
// LOAD and START: brings chunks of a program to the memories of its spaces, checks a complete program's header, and keeps it as the current one.
//
// A chunk is read twice, for its CRC and then for its words: one that arrives damaged changes nothing, wherever it begins and ends.
//
// Checks and their order: docs/isa.md, sections 4 to 6. Fields of the descriptor stay until done.
module program_loader
  import gharial_pkg::*;
  import gharial_config_pkg::*;
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
  localparam int unsigned Spaces = 6;
  localparam int unsigned TableBytes = 9216;
  localparam logic [31:0] Magic = 32'h50524847;
  localparam logic [31:0] Version = 32'h00010000;
  localparam logic [31:0] HeaderBytes = 32'd256;
  localparam int unsigned Capacity[Spaces] = '{CodeBytes, WeightBytes, ScaleBytes, BiasBytes, TableBytes, EmbedBytes};
  localparam int unsigned UnitBytes[Spaces] = '{32, Rows * Cols, 4 * Rows, 4 * Rows, TableBytes, Cols};

  typedef enum logic [3:0] {
    Idle,
    LoadCheck,
    Request,
    Stream,
    LoadEnd,
    HeaderRead,
    HeaderCheck,
    EncSlotCount,
    PredSlotCount,
    Accept,
    Done
  } state_e;

  state_e state_q;
  logic [31:0] loaded_q[Spaces];
  logic [31:0] crc_q, at_q, fault_detail_q;
  logic good_q;  // the chunk's CRC is right: this time its words are written
  logic [26:0] left_q;
  fault_e fault_q;
  unit_e unit_q;

  assign fault_o  = fault_q;
  assign unit_o   = unit_q;
  assign detail_o = fault_detail_q;
  assign done_o   = state_q == Done;

  // LOAD's own checks, in order.
  logic [31:0] capacity, there;
  always_comb begin
    capacity = '0;
    there = '0;
    for (int s = 0; s < int'(Spaces); s++) begin
      if (32'(space_i) == 32'(s)) begin
        capacity = Capacity[s];
        there = loaded_q[s];
      end
    end
  end
  fault_e load_fault;
  logic [31:0] load_detail;
  logic [64:0] chunk_end;
  assign chunk_end = 65'(address_i) + 65'(bytes_i);
  always_comb begin
    load_fault  = FaultBadCommand;
    load_detail = 32'd13;
    if (32'(space_i) >= Spaces) load_detail = 32'd13;
    else if (in_place_i) load_detail = 32'd0;
    else if ((offset_i != '0 && offset_i != there) || offset_i[1:0] != '0) load_detail = 32'd12;
    else if (bytes_i[1:0] != '0 || 33'(offset_i) + 33'(bytes_i) > 33'(capacity)) load_detail = 32'd13;
    else if (address_i[1:0] != '0 || chunk_end > 65'(mem_size_i)) begin
      load_fault  = FaultAddress;
      load_detail = address_i[31:0];
    end else load_fault = FaultNone;
  end

  // The header's words, kept as they pass.
  logic [31:0] header_word;
  logic [ 5:0] index_q;
  logic [ 1:0] reading_q;
  ram_1r1w #(
      .Width(32),
      .Words(64)
  ) u_header (
      .clk_i,
      .we_i(load_valid_o && load_space_o == SpaceCode && load_addr_o < 27'd64),
      .waddr_i(load_addr_o[5:0]),
      .wdata_i(load_data_o),
      .re_i(state_q == HeaderRead),
      .raddr_i(index_q),
      .rdata_o(header_word)
  );

  logic [31:0] w_q[22];  // words 0 to 21
  logic [31:0] stored_crc_q;
  logic [5:0] arrived_q;

  assign read_valid_o = state_q == Request;
  assign read_words_o = bytes_i[28:2];
  assign load_valid_o = state_q == Stream && good_q && data_valid_i;
  assign load_space_o = space_e'(space_i);
  assign load_addr_o  = at_q[28:2];
  assign load_data_o  = data_i;

  // The header's checks, one a clock; the word at fault is the step's number.
  logic [15:0] enc_count_q, pred_count_q, enc_slots_q, pred_slots_q;  // slots: counted, and of the current program
  logic wrong;
  logic [4:0] step_q;
  logic [31:0] value, feature_units, instructions;
  logic blank_last;
  assign blank_last = w_q[19][31:16] + 16'd1 == w_q[19][15:0];
  assign instructions = (w_q[4] - HeaderBytes) >> 5;
  assign feature_units = {16'd0, w_q[13][15:0]} / Cols;
  always_comb begin
    wrong = 1'b0;
    value = '0;
    unique case (step_q)
      5'd0: wrong = loaded_q[SpaceCode] < HeaderBytes || w_q[0] != Magic;
      5'd1: wrong = w_q[1][31:16] != Version[31:16] || w_q[1][15:0] > Version[15:0];
      5'd2: wrong = w_q[2] != ConfigId;
      5'd3: wrong = stored_crc_q != ~crc_q;  // word 63
      5'd4, 5'd5, 5'd6, 5'd7, 5'd8, 5'd9: begin
        for (int s = 0; s < int'(Spaces); s++) begin
          if (step_q == 5'(s + 4)) begin
            value = w_q[s+4];
            wrong = value > Capacity[s] || value != loaded_q[s] || value % UnitBytes[s] != '0;
          end
        end
        if (step_q == 5'd8 && value != TableBytes) wrong = 1'b1;
      end
      5'd10, 5'd11, 5'd12: begin
        value = (step_q == 5'd10) ? w_q[10] : (step_q == 5'd11) ? w_q[11] : w_q[12];
        wrong = value[31:16] > 16'd255 || 32'(value[15:0]) + 32'(value[31:16]) > instructions;
      end
      5'd13:
      wrong = w_q[13][23:16] == '0 || w_q[13][23:16] > 8'd4 || w_q[13][15:0] == '0 || 32'(w_q[13][15:0]) % Cols != '0;
      5'd14: begin
        value = (w_q[13][16] ? feature_units : '0) + (w_q[13][17] ? feature_units << 1 : '0) + (w_q[13][18] ? feature_units << 2 : '0);
        wrong = 32'(w_q[14][15:0]) + value > 32'(w_q[14][31:16]) || 32'(w_q[14][31:16]) > ScratchUnits;
      end
      5'd15: wrong = enc_count_q == '0;
      5'd16: wrong = pred_count_q == '0;
      5'd17: wrong = 32'(w_q[17][15:0]) + {15'd0, w_q[17][31:16], 1'b0} > 32'(w_q[15][31:16]);
      5'd18: wrong = 32'(w_q[18][15:0]) + 32'(w_q[18][31:16]) > 32'(w_q[16][31:16]);
      5'd19: wrong = w_q[19][15:0] == '0 || 32'(w_q[19][15:0]) > MaxClasses || w_q[19][31:16] >= w_q[19][15:0];
      5'd20: wrong = w_q[20][7:0] < 8'd4 || w_q[20][7:0] > 8'd12;
      // An embedding row for every class but blank.
      default: wrong = 32'(w_q[21][15:0]) > SumGroups || 32'(w_q[21][31:16]) + 32'(blank_last) < 32'(w_q[19][15:0]);
    endcase
  end

  // Slots: as many as both pools hold, counted one by one.
  logic [31:0] act_sum_q, cell_sum_q;
  logic one_more_enc, one_more_pred;
  assign one_more_enc = 32'(enc_count_q) < EncSlots && act_sum_q + 32'(w_q[15][15:0]) <= EncAUnits &&
      cell_sum_q + 32'(w_q[15][31:16]) <= EncCUnits;
  assign one_more_pred = 32'(pred_count_q) < PredSlots && act_sum_q + 32'(w_q[16][15:0]) <= PredAUnits &&
      cell_sum_q + 32'(w_q[16][31:16]) <= PredCUnits;
  assign enc_slots_o = enc_slots_q;
  assign pred_slots_o = pred_slots_q;

  always_ff @(posedge clk_i) begin
    started_o <= 1'b0;
    reading_q <= {reading_q[0], state_q == HeaderRead};

    unique case (state_q)
      Idle: begin
        if (load_i || start_i) begin
          fault_q <= FaultNone;
          unit_q  <= UnitNone;
        end
        crc_q <= CrcInit;
        index_q <= '0;
        arrived_q <= '0;
        if (load_i) state_q <= LoadCheck;
        else if (start_i) state_q <= HeaderRead;
      end
      LoadCheck: begin
        good_q <= 1'b0;
        if (load_fault != FaultNone) begin
          fault_q <= load_fault;
          unit_q <= UnitHost;
          fault_detail_q <= load_detail;
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
          if (left_q == 27'd1) state_q <= LoadEnd;
        end
        if (error_i) begin
          fault_q <= FaultBusRead;
          unit_q <= UnitMemory;
          fault_detail_q <= error_addr_i;
          state_q <= Done;
        end
      end
      LoadEnd: begin
        state_q <= Done;
        if (~crc_q != crc_i) begin
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
      HeaderRead: begin
        index_q <= index_q + 6'd1;
        if (index_q == 6'd63) state_q <= HeaderCheck;
      end
      HeaderCheck: begin
        enc_count_q <= '0;
        pred_count_q <= '0;
        act_sum_q <= '0;
        cell_sum_q <= '0;
        if (reading_q == '0) state_q <= EncSlotCount;
      end
      EncSlotCount: begin
        if (one_more_enc) begin
          enc_count_q <= enc_count_q + 16'd1;
          act_sum_q   <= act_sum_q + 32'(w_q[15][15:0]);
          cell_sum_q  <= cell_sum_q + 32'(w_q[15][31:16]);
        end else begin
          act_sum_q <= '0;
          cell_sum_q <= '0;
          state_q <= PredSlotCount;
        end
      end
      PredSlotCount: begin
        step_q <= '0;
        if (one_more_pred) begin
          pred_count_q <= pred_count_q + 16'd1;
          act_sum_q <= act_sum_q + 32'(w_q[16][15:0]);
          cell_sum_q <= cell_sum_q + 32'(w_q[16][31:16]);
        end else begin
          state_q <= Accept;
        end
      end
      Accept: begin
        step_q <= step_q + 5'd1;
        if (wrong) begin
          fault_q <= FaultBadProgram;
          unit_q <= UnitHost;
          fault_detail_q <= (step_q == 5'd3) ? 32'd63 : 32'(step_q);
          state_q <= Done;
        end else if (step_q == 5'd21) begin
          valid_o <= 1'b1;
          started_o <= 1'b1;
          program_id_o <= w_q[3];
          enc_slots_q <= enc_count_q;
          pred_slots_q <= pred_count_q;
          state_q <= Done;
        end
      end
      default: state_q <= Idle;
    endcase

    // Header words arrive two clocks after they were asked for.
    if (reading_q[1]) begin
      arrived_q <= arrived_q + 6'd1;
      if (arrived_q < 6'd22) w_q[arrived_q[4:0]] <= header_word;
      if (arrived_q == 6'd63) stored_crc_q <= header_word;
      else crc_q <= crc_next(crc_q, header_word);
    end

    if (abort_i) begin
      state_q   <= Idle;
      reading_q <= '0;
    end
    if (rst_i) begin
      state_q <= Idle;
      reading_q <= '0;
      valid_o <= 1'b0;
      program_id_o <= '0;
      enc_slots_q <= '0;
      pred_slots_q <= '0;
      for (int s = 0; s < int'(Spaces); s++) loaded_q[s] <= '0;
    end
  end

  assign header_o = '{
          predict_first: w_q[10][15:0],
          predict_count: w_q[10][31:16],
          encode_first: w_q[11][15:0],
          encode_count: w_q[11][31:16],
          joint_first: w_q[12][15:0],
          joint_count: w_q[12][31:16],
          feature_units: 16'(feature_units),
          vectors: w_q[13][18:16],
          feature_unit: w_q[14][15:0],
          scratch_units: w_q[14][31:16],
          enc_a_units: w_q[15][15:0],
          enc_c_units: w_q[15][31:16],
          pred_a_units: w_q[16][15:0],
          pred_c_units: w_q[16][31:16],
          joint_enc_unit: w_q[17][15:0],
          joint_enc_units: w_q[17][31:16],
          joint_pred_unit: w_q[18][15:0],
          joint_pred_units: w_q[18][31:16],
          classes: w_q[19][15:0],
          blank: w_q[19][31:16],
          logit_bits: w_q[20][3:0],
          sum_groups: w_q[21][15:0],
          tokens: w_q[21][31:16],
          tiles: 24'(w_q[5] / (Rows * Cols)),
          scale_groups: 16'(w_q[6] / (4 * Rows)),
          bias_groups: 16'(w_q[7] / (4 * Rows)),
          embed_units: w_q[9] / Cols
      };
endmodule
