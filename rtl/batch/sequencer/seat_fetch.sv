// SPDX-License-Identifier: Apache-2.0
// First stage of a thread: fetches the instructions of a run one by one, checks them, finds the seats for which each holds, and hands them on.
// It works ahead of the cutter by one instruction, into the next run if there is one.
module seat_fetch
  import gharial_pkg::*;
  import sequencer_pkg::*;
  import seat_pkg::*;
  import thread_pkg::*;
#(
    parameter int unsigned Rows = gharial_config_pkg::Rows,
    parameter int unsigned Cols = gharial_config_pkg::Cols
) (
    input logic clk_i,
    input logic rst_i,

    input header_t header_i,

    input  logic      run_valid_i,
    output logic      run_ready_o,
    input  seat_run_t run_i,

    // Code memory, by instructions; data two clocks after the grant.
    output logic          code_req_o,
    output logic   [15:0] code_addr_o,
    input  logic          code_grant_i,
    input  instr_t        code_data_i,

    output logic       step_valid_o,
    input  logic       step_ready_i,
    output seat_step_t step_o
);
  localparam logic [15:0] HeaderInstrs = 16'd8;  // the header has the size of so many

  typedef enum logic [2:0] {
    Idle,
    Next,
    Fetch,
    Arrive,
    Settle,
    CheckStart,
    Check,
    Hand
  } state_e;

  state_e state_q;
  seat_run_t run_q;
  logic [15:0] index_q, first_q, count_q;
  instr_t instr_q;
  logic arriving_q, ends, last_instr;

  assign run_ready_o = state_q == Idle;
  assign code_req_o  = state_q == Fetch;
  assign code_addr_o = HeaderInstrs + first_q + index_q;
  assign ends        = count_q == '0;
  assign last_instr  = index_q + 16'd1 == count_q;

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
      .token_i(16'd0),
      .done_o(checked),
      .fault_o(check_fault),
      .embed_unit_o(embed_unit)
  );

  // The seats for which the predicate holds. The instruction is checked long after this is known.
  seats_t holds_q;
  always_ff @(posedge clk_i) begin
    for (int s = 0; s < int'(Seats); s++) begin
      unique case (instr_q[0][12:11])
        More: holds_q[s] <= run_q.seats[s] && run_q.vectors[s] > 3'(instr_q[0][14:13]);
        AtMost: holds_q[s] <= run_q.seats[s] && run_q.vectors[s] <= 3'(instr_q[0][14:13]);
        default: holds_q[s] <= run_q.seats[s];
      endcase
    end
  end

  assign step_valid_o = state_q == Hand;
  assign step_o = '{
          ends: ends,
          is_first: index_q == '0,
          is_last: ends || last_instr,
          fault: ends ? FaultNone : check_fault,
          index: index_q[7:0],
          number: first_q + index_q,
          instr: instr_q,
          section: run_q.section,
          side: run_q.side,
          seats: holds_q
      };

  always_ff @(posedge clk_i) begin
    arriving_q <= state_q == Fetch && code_grant_i;

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
      Next: state_q <= ends ? Hand : Fetch;
      Fetch: if (code_grant_i) state_q <= Arrive;
      Arrive: begin
        instr_q <= code_data_i;
        if (!arriving_q) state_q <= Settle;
      end
      Settle: state_q <= CheckStart;  // the check decodes the first word a clock before it starts
      CheckStart: state_q <= Check;
      Check: if (checked) state_q <= Hand;
      default: begin
        if (step_ready_i) begin
          index_q <= index_q + 16'd1;
          state_q <= (ends || last_instr || step_o.fault != FaultNone) ? Idle : Next;
        end
      end
    endcase

    if (rst_i) state_q <= Idle;
  end

  logic unused;
  assign unused = &{1'b0, header_i, embed_unit};  // fields of other blocks; a seat's own token is looked up by the aux unit
endmodule
