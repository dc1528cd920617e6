// SPDX-License-Identifier: Apache-2.0
// Second stage of a thread: holds an instruction until what it depends on has retired, then hands its job out.
//
// The next run may start while results of the one before are outstanding; an instruction that reads state waits until they are not. A run is done when
// all its results are written. Whether an instruction may go is known a clock after the last thing that it waits for: once it may, nothing but its going
// changes that.
module thread_issue
  import gharial_pkg::*;
  import sequencer_pkg::*;
#(
    parameter thread_e Thread = ThreadEncode,
    parameter int unsigned InFlight = 4  // most MATVECs whose results are outstanding, at least 2
) (
    input logic clk_i,
    input logic rst_i,

    input  logic  step_valid_i,
    output logic  step_ready_o,
    input  step_t step_i,

    output logic waiting_o,  // an instruction waits for results

    // The end of a run, in order.
    output logic          done_o,   // one clock
    output fault_e        fault_o,
    output logic   [31:0] detail_o, // instruction of the code space

    // Matrix and vector unit take their jobs together.
    output logic     job_valid_o,
    input  logic     job_ready_i,
    output mat_job_t mat_job_o,
    output vec_job_t vec_job_o,
    input  logic     retire_i,     // the oldest job's results are written

    output logic     aux_valid_o,
    input  logic     aux_ready_i,
    output aux_job_t aux_job_o,
    input  logic     aux_done_i
);
  localparam int unsigned CountW = $clog2(InFlight + 1);

  // The step in hand.
  logic  held_q;
  step_t step_q;
  logic  leaves;  // the step in hand is finished with
  assign step_ready_o = !held_q;

  instr_t instr;
  post_e  post;
  logic is_matvec, works;
  assign instr = step_q.instr;
  assign post = post_e'(instr[0][10:8]);
  assign works = held_q && !step_q.ends && step_q.fault == FaultNone;
  assign is_matvec = instr[0][7:0] == OpMatvec;

  // Outstanding jobs, oldest first: run (toggles from run to run) and instruction counted from 1.
  typedef struct packed {
    logic run;
    logic [8:0] number;
  } mark_t;
  mark_t [InFlight-1:0] out_q;
  mark_t mark;
  logic [CountW-1:0] out_count_q;
  logic retire_q;  // taken off in this clock, so not looked at any more
  logic run_q;  // toggle of the step's run
  logic drained, older, room, push, met, reads_state;
  logic [7:0] depends;

  assign mark = '{run: run_q, number: 9'(step_q.index) + 9'd1};
  assign depends = instr[6][23:16];
  assign drained = out_count_q == CountW'(retire_q);
  // Of either that may be the oldest, before it is known which it is.
  logic [1:0] others, behinds;
  logic other_run, behind;
  always_comb begin
    for (int i = 0; i < 2; i++) begin
      others[i]  = out_q[i].run != run_q;
      behinds[i] = out_q[i].number > 9'(depends);
    end
  end
  assign other_run = others[retire_q];
  assign behind = behinds[retire_q];
  assign older = !drained && other_run;
  assign room = 32'(out_count_q) < InFlight;
  assign reads_state = instr[3][15:14] == InSource || post == PostCell;
  assign met = (depends == '0 || drained || (!older && behind)) && !(reads_state && older);
  assign push = job_valid_o && job_ready_i;

  always_ff @(posedge clk_i) begin
    retire_q <= retire_i;
    for (int i = 0; i < int'(InFlight); i++) begin
      if (retire_q && i + 1 < int'(InFlight)) out_q[i] <= out_q[(i+1<int'(InFlight))?i+1 : i];
      if (push && i == int'(out_count_q) - int'(retire_q)) out_q[i] <= mark;
    end
    if (rst_i) begin
      retire_q <= 1'b0;
      out_count_q <= '0;
    end else begin
      out_count_q <= out_count_q + CountW'(push) - CountW'(retire_q);
    end
  end

  // The run that has been issued but not written yet.
  logic tail_q, tail_done, aux_busy_q, fault_ends, run_ends, held_back;
  assign tail_done  = tail_q && (drained || !other_run);
  assign fault_ends = held_q && step_q.fault != FaultNone && drained && !tail_q;

  assign held_back  = step_q.is_last && tail_q;
  always_ff @(posedge clk_i) begin
    job_valid_o <= works && is_matvec && met && room && !held_back && !push;
    aux_valid_o <= works && !is_matvec && drained && !aux_busy_q && !held_back && !(aux_valid_o && aux_ready_i);
    waiting_o   <= held_q && !(works && is_matvec && met);
    if (rst_i) {job_valid_o, aux_valid_o, waiting_o} <= '0;
  end

  always_comb begin
    leaves = push || (works && aux_busy_q && aux_done_i) || fault_ends;
    if (held_q && step_q.ends && !tail_q) leaves = 1'b1;
    run_ends = leaves && !fault_ends && (step_q.ends || step_q.is_last);
  end

  always_ff @(posedge clk_i) begin
    done_o   <= tail_done || fault_ends;
    fault_o  <= fault_ends ? step_q.fault : FaultNone;
    detail_o <= 32'(step_q.number);
    if (step_ready_o) step_q <= step_i;
    if (rst_i) begin
      held_q <= 1'b0;
      tail_q <= 1'b0;
      aux_busy_q <= 1'b0;
      run_q <= 1'b0;
    end else begin
      if (step_ready_o) held_q <= step_valid_i;
      else if (leaves) held_q <= 1'b0;
      if (aux_valid_o && aux_ready_i) aux_busy_q <= 1'b1;
      else if (aux_done_i) aux_busy_q <= 1'b0;
      if (run_ends) begin
        tail_q <= 1'b1;
        run_q  <= ~run_q;
      end else if (tail_done) begin
        tail_q <= 1'b0;
      end
    end
  end

  // Physical addresses.
  function automatic logic [ActAddrW-1:0] physical(input logic [15:0] field);
    unique case (field[15:14])
      InScratch: return step_q.run.scratch + ActAddrW'(field[13:0]);
      InSource:  return step_q.run.source_act + ActAddrW'(field[13:0]);
      default:   return step_q.run.destination_act + ActAddrW'(field[13:0]);
    endcase
  endfunction

  always_comb begin
    mat_job_o = '{
        tile: instr[1][23:0],
        row_groups: instr[2][15:0],
        col_tiles: instr[2][31:16],
        vectors_less_1: instr[0][16:15],
        source: physical(instr[3][15:0]),
        source_stride: instr[3][31:16]
    };
    vec_job_o = '{
        thread: Thread,
        post: post,
        vectors_less_1: instr[0][16:15],
        first: mask_of(instr[0][20:17], instr),
        last: mask_of(instr[0][24:21], instr),
        row_groups: instr[2][15:0],
        sum_group: instr[6][15:0],
        scale_group: instr[7][15:0],
        bias_group: instr[7][31:16],
        shift: instr[6][27:24],
        qh: instr[6][31:28],
        i8_high: instr[5][22:16],
        i8_signed: instr[5][23],
        destination: physical(instr[4][15:0]),
        destination_stride: instr[4][31:16],
        second_valid: post == PostCell && instr[5][31:16] != NoSecond,
        second: physical(instr[5][31:16]),
        cell_source: step_q.run.source_cell + CellAddrW'(instr[5][15:0]),
        cell_destination:
        (
        post == PostI16
        ) ?
        step_q.run.i16_cell + CellAddrW'(instr[4][13:0])
        :
        step_q.run.destination_cell
        +
        CellAddrW
        '(
        instr[5][15:0]
        )
    };
    aux_job_o = '{
        joint: instr[0][7:0] == OpJoint,
        zero: step_q.run.zero_token && instr[0][10:8] == 3'd0,
        embed_unit: step_q.embed_unit,
        unit_count: (instr[0][7:0] == OpJoint) ? instr[2][15:0] : instr[2][31:16],
        joint_enc: step_q.run.joint_enc + CellAddrW'(instr[3][15:0]),
        joint_pred: step_q.run.joint_pred + CellAddrW'(instr[3][31:16]),
        shift: instr[6][27:24],
        destination: physical(instr[4][15:0])
    };
  end
endmodule
