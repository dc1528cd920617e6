// SPDX-License-Identifier: Apache-2.0
// First stage of a thread: fetches the instructions of a run one by one, checks them, drops those whose predicate does not hold, and hands on the rest.
// It works ahead of the issue stage by one instruction, into the next run if there is one, so that an instruction's fetch and check cost no time of the array.
module thread_fetch
  import gharial_pkg::*;
  import sequencer_pkg::*;
#(
    parameter int unsigned Rows = 32,
    parameter int unsigned Cols = 8
) (
    input logic clk_i,
    input logic rst_i,

    input header_t header_i,

    input  logic run_valid_i,
    output logic run_ready_o,
    input  run_t run_i,

    // Code memory, word address; data two clocks after the grant.
    output logic        code_req_o,
    output logic [15:0] code_addr_o,
    input  logic        code_grant_i,
    input  logic [31:0] code_data_i,

    output logic  step_valid_o,
    input  logic  step_ready_i,
    output step_t step_o
);
  localparam logic [15:0] HeaderWords = 16'd64;
  localparam logic [3:0] InstrWords = 4'd8;

  typedef enum logic [2:0] {
    Idle,
    Next,
    Fetch,
    CheckStart,
    Check,
    Hand
  } state_e;

  state_e state_q;
  run_t   run_q;
  logic [15:0] index_q, first_q, count_q;
  instr_t instr_q;
  logic [3:0] asked_q, got_q;
  logic [1:0] arriving_q;
  logic ends, last_instr;

  assign run_ready_o = state_q == Idle;
  assign code_req_o = state_q == Fetch && asked_q < InstrWords;
  assign code_addr_o = HeaderWords + ((first_q + index_q) << 3) + 16'(asked_q);
  assign ends = index_q == count_q;
  assign last_instr = index_q + 16'd1 == count_q;

  logic checked;
  fault_e check_fault;
  logic [31:0] embed_unit;
  instr_check #(
      .Rows(Rows),
      .Cols(Cols)
  ) u_check (
      .clk_i,
      .rst_i,
      .header_i,
      .start_i(state_q == CheckStart),
      .instr_i(instr_q),
      .section_i(run_q.section),
      .token_i(run_q.token),
      .done_o(checked),
      .fault_o(check_fault),
      .embed_unit_o(embed_unit)
  );

  logic taken;
  always_comb begin
    unique case (instr_q[0][12:11])
      More: taken = run_q.vectors > 3'(instr_q[0][14:13]);
      AtMost: taken = run_q.vectors <= 3'(instr_q[0][14:13]);
      default: taken = 1'b1;
    endcase
  end

  assign step_valid_o = state_q == Hand;
  assign step_o = '{
          ends: ends,
          is_last: last_instr,
          fault: ends ? FaultNone : check_fault,
          index: index_q,
          number: first_q + index_q,
          instr: instr_q,
          embed_unit: embed_unit,
          run: run_q
      };

  always_ff @(posedge clk_i) begin
    arriving_q <= {arriving_q[0], code_req_o && code_grant_i};
    if (code_req_o && code_grant_i) asked_q <= asked_q + 4'd1;
    if (arriving_q[1]) begin
      instr_q[got_q[2:0]] <= code_data_i;
      got_q <= got_q + 4'd1;
    end

    unique case (state_q)
      Idle: begin
        run_q   <= run_i;
        index_q <= '0;
        unique case (run_i.section)
          SectionPredict: {first_q, count_q} <= {header_i.predict_first, header_i.predict_count};
          SectionEncode: {first_q, count_q} <= {header_i.encode_first, header_i.encode_count};
          default: {first_q, count_q} <= {header_i.joint_first, header_i.joint_count};
        endcase
        if (run_valid_i) state_q <= Next;
      end
      Next: begin
        asked_q <= '0;
        got_q   <= '0;
        state_q <= ends ? Hand : Fetch;
      end
      Fetch: if (got_q == InstrWords) state_q <= CheckStart;
      CheckStart: state_q <= Check;
      Check: begin
        if (checked) begin
          if (check_fault == FaultNone && !taken) begin
            index_q <= index_q + 16'd1;
            state_q <= Next;
          end else begin
            state_q <= Hand;
          end
        end
      end
      default: begin
        if (step_ready_i) begin
          index_q <= index_q + 16'd1;
          state_q <= (ends || last_instr || step_o.fault != FaultNone) ? Idle : Next;
        end
      end
    endcase

    if (rst_i) begin
      state_q <= Idle;
      arriving_q <= '0;
    end
  end
endmodule
