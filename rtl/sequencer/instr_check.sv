// SPDX-License-Identifier: Apache-2.0
// Checks one instruction: is it defined in its section, and does every operand lie within its space (docs/isa.md, section 4).
//
// Serial: a step an operand, beside a shift-and-add multiplication; some 15 clocks, hidden behind the instruction that runs. On the way it makes the
// address of the embedding row that a LOOKUP reads.
module instr_check
  import gharial_pkg::*;
  import sequencer_pkg::*;
#(
    parameter int unsigned Rows = 32,
    parameter int unsigned Cols = 8
) (
    input logic clk_i,
    input logic rst_i,

    input header_t         header_i,
    input logic            start_i,    // the instruction is there and stays until done
    input instr_t          instr_i,
    input section_e        section_i,
    input logic     [15:0] token_i,

    output logic          done_o,       // one clock
    output fault_e        fault_o,
    output logic   [31:0] embed_unit_o  // of a LOOKUP
);
  localparam int unsigned CellUnit = Rows / 4;
  localparam logic [16:0] MostTiles = 17'(65536 / Cols);  // columns of a part

  typedef enum logic [3:0] {
    Idle,
    Source,
    Scale,
    Bias,
    Sums,
    Destination,
    CellOrPrediction,
    Second,
    Extent,  // first tile or embedding unit + row groups x column tiles, or tokens x units
    TokenRow,  // LOOKUP: the token's row
    Settle,  // the last steps are on their way
    Result
  } state_e;

  state_e state_q;
  fault_e fault_q;
  logic   settled_q;
  logic [31:0] a_q, product_q;
  logic [15:0] b_q;

  logic is_matvec, is_lookup, is_joint, multiplied;
  post_e post;
  logic [3:0] first, last;
  logic [ 2:0] vectors;
  logic [15:0] groups;
  always_ff @(posedge clk_i) begin  // the first word is there long before the start
    is_matvec <= instr_i[0][7:0] == OpMatvec;
    is_lookup <= instr_i[0][7:0] == OpLookup;
    is_joint  <= instr_i[0][7:0] == OpJoint;
  end
  assign post = post_e'(instr_i[0][10:8]);
  assign vectors = vectors_of(instr_i);
  assign first = mask_of(instr_i[0][20:17], instr_i);
  assign last = mask_of(instr_i[0][24:21], instr_i);
  assign groups = instr_i[2][15:0];

  // Defined at all, and in this section?
  logic defined;
  always_comb begin
    defined = instr_i[0][12:11] <= AtMost;
    if (is_matvec) begin
      unique case (post)
        PostNone, PostI8: ;
        PostCell: if (section_i == SectionJoint || (last & (last - 4'd1)) != '0) defined = 1'b0;
        PostI16: if (section_i == SectionJoint) defined = 1'b0;
        PostLogit: if (section_i != SectionJoint) defined = 1'b0;
        default: defined = 1'b0;
      endcase
      if (section_i != SectionEncode && vectors != 3'd1) defined = 1'b0;
    end else if (is_lookup) begin
      if (instr_i[0][10:8] > 3'd1 || (instr_i[0][10:8] == 3'd0 && section_i != SectionPredict)) defined = 1'b0;
    end else if (is_joint) begin
      if (section_i != SectionJoint) defined = 1'b0;
    end else begin
      defined = 1'b0;
    end
  end

  // Sizes of spaces and outputs.
  function automatic logic [18:0] times(input logic [15:0] multiplicand, input logic [2:0] count);  // at most 4
    logic [18:0] wide;
    wide = 19'(multiplicand);
    return (count[2] ? wide << 2 : count[0] ? wide : '0) + (count[1] ? wide << 1 : '0);
  endfunction

  // Activation units of so many cell units of int8.
  function automatic logic [23:0] act_units(input logic [15:0] cell_units);
    return 24'((32'(cell_units) * CellUnit + Cols - 1) / Cols);
  endfunction

  function automatic logic [15:0] space_units(input logic [1:0] space);
    return (space == InScratch) ? header_i.scratch_units :
        (section_i == SectionEncode) ? header_i.enc_a_units : header_i.pred_a_units;
  endfunction

  // Vectors whose sums are kept, up to the last such one.
  logic [3:0] kept;
  logic [2:0] kept_count;
  always_comb begin
    kept = ~(first & last) & ~(4'b1110 << (vectors - 3'd1));
    kept_count = kept[3] ? 3'd4 : kept[2] ? 3'd3 : kept[1] ? 3'd2 : kept[0] ? 3'd1 : 3'd0;
  end

  // A step's one comparison: base + value * factor + extent against a limit, in three stages behind the state.
  logic [31:0] base, extent, limit;
  logic [15:0] value;
  logic [ 2:0] factor;
  logic applies, forbidden, empty;
  logic [15:0] destination;
  logic [23:0] output_units;
  assign destination = instr_i[4][15:0];
  assign empty = (!is_lookup && groups == '0) || (!is_joint && instr_i[2][31:16] == '0);
  always_comb begin
    if (is_lookup) output_units = 24'(instr_i[2][31:16]);
    else if (is_joint) output_units = act_units(groups);
    else if (post == PostI8) output_units = 24'(groups) * 24'(Rows / Cols);
    else output_units = act_units(groups);
  end

  always_comb begin
    base = '0;
    value = instr_i[4][31:16];
    factor = '0;
    extent = 32'(groups);
    limit = '0;
    applies = 1'b0;
    forbidden = 1'b0;
    unique case (state_q)
      Source: begin
        base = 32'(instr_i[3][13:0]);
        value = instr_i[3][31:16];
        factor = vectors - 3'd1;
        extent = 32'(instr_i[2][31:16]);
        limit = 32'(space_units(instr_i[3][15:14]));
        applies = is_matvec;
        forbidden = is_matvec && instr_i[3][15:14] > InDestination;
        if (is_joint) begin
          base = 32'(instr_i[3][15:0]);
          factor = '0;
          extent = 32'(groups);
          limit = 32'(header_i.joint_enc_units);
          applies = 1'b1;
        end
      end
      Scale: begin
        base = 32'(instr_i[7][15:0]);
        limit = 32'(header_i.scale_groups);
        applies = is_matvec;
      end
      Bias: begin
        base = 32'(instr_i[7][31:16]);
        limit = 32'(header_i.bias_groups);
        applies = is_matvec && first != '0;
      end
      Sums: begin
        base = 32'(instr_i[6][15:0]);
        value = groups;
        factor = kept_count;
        extent = '0;
        limit = 32'(header_i.sum_groups);
        applies = is_matvec && kept_count != '0;
      end
      Destination: begin
        base = 32'(destination[13:0]);
        if (is_matvec) factor = vectors - 3'd1;
        extent = 32'(output_units);
        limit = 32'(space_units(destination[15:14]));
        applies = !is_matvec || (last != '0 && (post == PostCell || post == PostI8));
        forbidden = applies && (destination[15:14] == InSource || destination[15:14] > InDestination);
        if (is_matvec && post == PostI16) begin
          extent = 32'(groups) << 2;
          limit = (section_i == SectionEncode) ? 32'(header_i.joint_enc_units) : 32'(header_i.joint_pred_units);
          applies = last != '0;
          forbidden = applies && destination[15:14] != InScratch;
        end
      end
      CellOrPrediction: begin
        base = 32'(instr_i[5][15:0]);
        limit = (section_i == SectionEncode) ? 32'(header_i.enc_c_units) : 32'(header_i.pred_c_units);
        applies = is_matvec && post == PostCell && last != '0;
        if (is_joint) begin
          base = 32'(instr_i[3][31:16]);
          limit = 32'(header_i.joint_pred_units);
          applies = 1'b1;
        end
      end
      Second: begin
        base = 32'(instr_i[5][29:16]);
        factor = vectors - 3'd1;
        extent = 32'(output_units);
        limit = 32'(space_units(instr_i[5][31:30]));
        applies = is_matvec && post == PostCell && last != '0 && instr_i[5][31:16] != NoSecond;
        forbidden = applies && (instr_i[5][31:30] == InSource || instr_i[5][31:30] > InDestination);
      end
      Extent: begin
        base = instr_i[1];
        extent = product_q;
        limit = is_matvec ? 32'(header_i.tiles) : header_i.embed_units;
        applies = multiplied && !is_joint;
        forbidden = multiplied && (empty || (is_matvec && 17'(instr_i[2][31:16]) > MostTiles));
      end
      default: ;
    endcase
  end

  logic [31:0] base_q, extent_q, limit_q, sum_limit_q;
  logic [32:0] sum_q;
  logic [18:0] offset_q;
  logic [15:0] value_q;
  logic [ 2:0] factor_q;
  logic applies_q, forbidden_q, sum_applies_q, sum_forbidden_q, outside, undefined;
  assign undefined = state_q == Source && !defined;
  assign outside   = sum_forbidden_q || (sum_applies_q && 34'(sum_q) + 34'(offset_q) > 34'(sum_limit_q));
  always_ff @(posedge clk_i) begin
    base_q <= base;
    value_q <= value;
    factor_q <= factor;
    extent_q <= extent;
    limit_q <= limit;
    applies_q <= applies && !undefined;
    forbidden_q <= forbidden && !undefined;
    sum_q <= 33'(base_q) + 33'(extent_q);
    offset_q <= times(value_q, factor_q);
    sum_limit_q <= limit_q;
    sum_applies_q <= applies_q;
    sum_forbidden_q <= forbidden_q;
    if (rst_i) {applies_q, forbidden_q, sum_applies_q, sum_forbidden_q} <= '0;
  end

  assign fault_o = fault_q;

  always_ff @(posedge clk_i) begin
    done_o <= 1'b0;
    if (b_q[0]) product_q <= product_q + a_q;
    a_q <= a_q << 1;
    b_q <= b_q >> 1;
    multiplied <= b_q[15:1] == '0;  // b_q is 0; after a new factor a clock late at most
    settled_q <= state_q == Settle;

    unique case (state_q)
      Idle: begin
        if (start_i) begin
          fault_q <= FaultNone;
          product_q <= '0;
          a_q <= is_lookup ? 32'(instr_i[2][31:16]) : 32'(groups);
          multiplied <= 1'b0;
          b_q <= !is_lookup ? instr_i[2][31:16] : (instr_i[0][10:8] == 3'd0) ? header_i.tokens : 16'd1;
          state_q <= Source;
        end
      end
      Extent: begin
        if (multiplied) begin
          product_q <= '0;
          a_q <= 32'(instr_i[2][31:16]);
          multiplied <= 1'b0;
          b_q <= (is_lookup && instr_i[0][10:8] == 3'd0) ? token_i : '0;
          state_q <= TokenRow;
        end
      end
      TokenRow: if (multiplied) state_q <= Settle;
      Settle:   if (settled_q) state_q <= Result;
      Result: begin
        done_o <= 1'b1;
        embed_unit_o <= instr_i[1] + product_q;
        state_q <= Idle;
      end
      default:  state_q <= state_e'(state_q + 4'd1);
    endcase

    if (undefined) begin
      fault_q <= FaultBadOpcode;
      state_q <= Result;
    end
    if (outside) fault_q <= FaultAddress;
    if (rst_i) state_q <= Idle;
  end

  logic unused;
  assign unused = &{1'b0, header_i};  // fields of other blocks
endmodule
