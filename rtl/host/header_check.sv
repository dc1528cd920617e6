// SPDX-License-Identifier: Apache-2.0
// Checks the header of a complete program, word by word in ascending order, and keeps what the machine needs of it (docs/isa.md, section 4).
//
// Once a program, so it takes its time: all words for the CRC, then seven clocks a word, one comparison base + more > limit for each.
module header_check
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import host_pkg::*;
  import crc_pkg::*;
#(
    parameter bit InMemory = 1'b0  // slots lie in device memory: as many as may be named, each of a size at most
) (
    input logic clk_i,
    input logic rst_i,
    input logic abort_i, // give the check up; what is kept stays

    input  logic        start_i,           // one clock
    input  logic [31:0] loaded_i[Spaces],  // bytes that have come for each space
    output logic        done_o,            // one clock
    output logic        wrong_o,           // with done, and
    output logic [ 5:0] word_o,            // the first word that is wrong

    // The header's words; data two clocks after re.
    output logic        re_o,
    output logic [ 5:0] raddr_o,
    input  logic [31:0] word_i,

    output logic    [31:0] program_id_o,
    output header_t        header_o,
    output logic    [15:0] enc_slots_o,
    output logic    [15:0] pred_slots_o
);
  localparam logic [31:0] Magic = 32'h50524847;
  localparam logic [31:0] Version = 32'h00010001;
  localparam logic [31:0] HeaderBytes = 32'd256;
  localparam logic [5:0] LastStep = 6'd21;
  localparam logic [5:0] CrcWord = 6'd63;
  localparam int unsigned UnitBytes[Spaces] = '{
      32,
      Rows * Cols,
      4 * Rows,
      4 * Rows,
      4,
      Cols
  };  // tables: all or nothing

  if (EncAUnits > 65536 || EncCUnits > 65536 || PredAUnits > 65536 || PredCUnits > 65536) begin : gen_check
    $error("%m: state pools are too large");
  end
  if ((Rows & (Rows - 1)) != 0 || (Cols & (Cols - 1)) != 0) begin : gen_check_array
    $error("%m: Rows and Cols must be powers of two");
  end

  typedef enum logic [3:0] {
    Idle,
    Crc,       // all words pass
    Ask,
    Wait,
    Word,      // the word arrives
    Operands,
    Add,
    Compare,
    Judge,
    More,      // one slot more: does it fit?
    Size,
    Fits
  } state_e;

  state_e state_q;
  logic [5:0] step_q;  // the word in check; in Crc, the word asked for
  logic [31:0] word_q, crc_q;
  logic [1:0] way_q;
  logic [5:0] arrived_q;
  logic asked_q, crc_wrong_q;

  assign re_o = state_q == Ask || (state_q == Crc && !asked_q);
  assign raddr_o = step_q;

  // What a word must be, and bits that must be zero in it: by the step alone, so known before the word is.
  logic [31:0] expected_q, unit_mask_q;
  always_ff @(posedge clk_i) begin
    expected_q  <= Magic;
    unit_mask_q <= '0;
    if (step_q == 6'd1) expected_q <= Version;
    if (step_q == 6'd2) expected_q <= ConfigId;
    for (int s = 0; s < int'(Spaces); s++) begin
      if (step_q == 6'(s + 4)) begin
        expected_q  <= (s == int'(SpaceTables)) ? TableBytes : loaded_i[s];
        unit_mask_q <= UnitBytes[s] - 1;
      end
    end
  end

  // Fields that later words are checked against.
  header_t header_q;
  logic [15:0] instructions_q, slots_q;
  logic [15:0] enc_count_q, pred_count_q;  // told, as the program's number is, when the whole header is right
  logic [31:0] program_id_q;
  logic blank_last_q;
  logic [17:0] feature_units;  // of a step
  assign feature_units = (header_q.vectors[2] ? 18'(header_q.feature_units) << 2 : header_q.vectors[0] ? 18'(header_q.feature_units) : '0) +
      (header_q.vectors[1] ? 18'(header_q.feature_units) << 1 : '0);

  // Wrong in itself, or base + more > limit.
  logic [15:0] low, high;
  logic forbidden, differs, is_size;
  logic [17:0] base, more, limit;
  assign {high, low} = word_q;
  assign differs = word_q != expected_q;
  assign is_size = step_q >= 6'd4 && step_q <= 6'd9;
  always_comb begin
    forbidden = 1'b0;
    base = 18'(low);
    more = '0;
    limit = '1;
    unique case (step_q)
      6'd0: forbidden = differs || loaded_i[SpaceCode] < HeaderBytes;
      6'd1: begin
        forbidden = high != expected_q[31:16];
        limit = 18'(expected_q[15:0]);
      end
      6'd2: forbidden = differs;
      6'd3: forbidden = crc_wrong_q;
      6'd8: forbidden = differs || loaded_i[SpaceTables] != TableBytes;
      6'd10, 6'd11, 6'd12: begin
        forbidden = high[15:8] != '0;
        more = 18'(high);
        limit = 18'(instructions_q);
      end
      6'd13: forbidden = high[7:0] == '0 || high[7:0] > 8'd4 || low == '0 || (low & 16'(Cols - 1)) != '0;
      6'd14: begin
        forbidden = 32'(high) > ScratchUnits;
        more = feature_units;
        limit = 18'(high);
      end
      6'd15: forbidden = InMemory ? 32'(low) > EncAUnits || 32'(high) > EncCUnits : slots_q == '0;
      6'd16: forbidden = InMemory ? 32'(low) > PredAUnits || 32'(high) > PredCUnits : slots_q == '0;
      6'd17: begin
        forbidden = InMemory && 32'(high) > PredCUnits;
        more = {1'b0, high, 1'b0};
        limit = 18'(header_q.enc_c_units);
      end
      6'd18: begin
        more  = 18'(high);
        limit = 18'(header_q.pred_c_units);
      end
      6'd19: begin  // blank + 1 > classes
        forbidden = 32'(low) > MaxClasses;
        base = 18'(high);
        more = 18'd1;
        limit = 18'(low);
      end
      6'd20: forbidden = low[7:0] < 8'd4 || low[7:0] > 8'd12;
      6'd21: begin  // an embedding row for every class but a blank that is the last
        forbidden = 32'(low) > SumGroups;
        base = 18'(header_q.classes);
        more = blank_last_q ? '1 : '0;
        limit = 18'(high);
      end
      default: forbidden = is_size && (differs || (word_q & unit_mask_q) != '0);
    endcase
  end

  // Slots: as many as both pools hold, counted one by one.
  logic [17:0] act_sum_q, cell_sum_q, act_next_q, cell_next_q;
  logic [17:0] act_pool_q, cell_pool_q;
  logic [15:0] most_q;
  logic one_more_q;
  always_ff @(posedge clk_i) begin
    {most_q, act_pool_q, cell_pool_q} <= {16'(PredSlots), 18'(PredAUnits), 18'(PredCUnits)};
    if (step_q == 6'd15) {most_q, act_pool_q, cell_pool_q} <= {16'(EncSlots), 18'(EncAUnits), 18'(EncCUnits)};
    act_next_q  <= act_sum_q + 18'(low);
    cell_next_q <= cell_sum_q + 18'(high);
    one_more_q  <= slots_q < most_q && act_next_q <= act_pool_q && cell_next_q <= cell_pool_q;
  end

  logic [17:0] base_q, more_q, limit_q, sum_q;
  logic forbidden_q, wrong_q;
  always_ff @(posedge clk_i) begin
    base_q <= base;
    more_q <= more;
    limit_q <= limit;
    forbidden_q <= forbidden;
    sum_q <= base_q + more_q;
    wrong_q <= forbidden_q || sum_q > limit_q;
  end

  assign word_o   = (step_q == 6'd3) ? CrcWord : step_q;
  assign wrong_o  = wrong_q;
  assign done_o   = state_q == Judge && (wrong_q || step_q == LastStep);
  assign header_o = header_q;

  // A field is kept the clock after its word has been judged.
  logic judged_q;
  logic [5:0] judged_step_q;
  always_ff @(posedge clk_i) begin
    judged_q <= state_q == Judge;
    judged_step_q <= step_q;
    way_q <= {way_q[0], state_q == Crc && re_o};

    unique case (state_q)
      Idle: begin
        step_q <= '0;
        asked_q <= 1'b0;
        arrived_q <= '0;
        crc_q <= CrcInit;
        if (start_i) state_q <= Crc;
      end
      Crc: begin
        step_q <= step_q + 6'd1;
        if (step_q == CrcWord) asked_q <= 1'b1;
        if (way_q[1]) begin
          arrived_q <= arrived_q + 6'd1;
          crc_q <= crc_next(crc_q, word_i);
          crc_wrong_q <= word_i != ~crc_q;  // of the last, that counts
          if (arrived_q == CrcWord) begin
            step_q  <= '0;
            state_q <= Ask;
          end
        end
      end
      Ask: state_q <= Wait;
      Wait: state_q <= Word;
      Word: begin
        word_q <= word_i;
        slots_q <= '0;
        act_sum_q <= '0;
        cell_sum_q <= '0;
        state_q <= (!InMemory && (step_q == 6'd15 || step_q == 6'd16)) ? More : Operands;
      end
      More: state_q <= Size;
      Size: state_q <= Fits;
      Fits: begin
        act_sum_q  <= act_next_q;
        cell_sum_q <= cell_next_q;
        if (one_more_q) slots_q <= slots_q + 16'd1;
        state_q <= one_more_q ? More : Operands;
      end
      Operands: state_q <= Add;
      Add: state_q <= Compare;
      Compare: state_q <= Judge;
      default: begin
        step_q  <= step_q + 6'd1;
        state_q <= done_o ? Idle : Ask;
        if (done_o && !wrong_q) begin
          program_id_o <= program_id_q;
          enc_slots_o  <= InMemory ? 16'(EncSlots) : enc_count_q;
          pred_slots_o <= InMemory ? 16'(PredSlots) : pred_count_q;
        end
      end
    endcase

    if (judged_q) begin
      unique case (judged_step_q)
        6'd3: program_id_q <= word_q;
        6'd4: instructions_q <= 16'((word_q - HeaderBytes) >> 5);
        6'd5: header_q.tiles <= 24'(word_q / (Rows * Cols));
        6'd6: header_q.scale_groups <= 16'(word_q / (4 * Rows));
        6'd7: header_q.bias_groups <= 16'(word_q / (4 * Rows));
        6'd9: header_q.embed_units <= word_q / Cols;
        6'd10: {header_q.predict_count, header_q.predict_first} <= word_q;
        6'd11: {header_q.encode_count, header_q.encode_first} <= word_q;
        6'd12: {header_q.joint_count, header_q.joint_first} <= word_q;
        6'd13: {header_q.vectors, header_q.feature_units} <= {high[2:0], low / 16'(Cols)};
        6'd14: {header_q.scratch_units, header_q.feature_unit} <= word_q;
        6'd15: {header_q.enc_c_units, header_q.enc_a_units, enc_count_q} <= {word_q, slots_q};
        6'd16: {header_q.pred_c_units, header_q.pred_a_units, pred_count_q} <= {word_q, slots_q};
        6'd17: {header_q.joint_enc_units, header_q.joint_enc_unit} <= word_q;
        6'd18: {header_q.joint_pred_units, header_q.joint_pred_unit} <= word_q;
        6'd19: begin
          {header_q.blank, header_q.classes} <= word_q;
          blank_last_q <= sum_q[15:0] == low;
        end
        6'd20: header_q.logit_bits <= low[3:0];
        6'd21: {header_q.tokens, header_q.sum_groups} <= word_q;
        default: ;
      endcase
    end

    if (rst_i) begin
      program_id_o <= '0;
      enc_slots_o  <= '0;
      pred_slots_o <= '0;
    end
    if (rst_i || abort_i) begin
      state_q <= Idle;
      way_q   <= '0;
    end
  end
endmodule
