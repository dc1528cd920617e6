// SPDX-License-Identifier: Apache-2.0
// Second stage of a thread: cuts MATVECs into segments, holds LOOKUPs and JOINTs until their turn, and knows when a run is done.
//
// A segment is offered as soon as it can be made, with the mark of what it waits for: so many of the thread's instructions must have retired before it
// may be released. Marks count what has been put in order, LOOKUP and JOINT too; those retire by the aux unit's word, and as nothing of their thread
// passes them, all retire in order. The next run may be cut while the results of one are outstanding; a third waits.
module segment_cutter
  import gharial_pkg::*;
  import sequencer_pkg::*;
  import seat_pkg::*;
  import thread_pkg::*;
#(
    parameter thread_e Thread = ThreadEncode,
    parameter int unsigned AccVectors = gharial_config_pkg::AccVectors
) (
    input logic clk_i,
    input logic rst_i,

    input header_t header_i,

    input  logic       step_valid_i,
    output logic       step_ready_o,
    input  seat_step_t step_i,

    input logic [1:0] fetched_i,  // by side
    input logic       retire_i,   // the oldest MATVEC's results are written

    output logic  seg_valid_o,
    input  logic  seg_ready_i,
    output cut_t  seg_o,
    output mark_t retired_o,

    // A job that may go, until it is taken.
    output logic aux_valid_o,
    input logic aux_taken_i,
    output seat_aux_job_t aux_job_o,
    input logic aux_done_i,
    input logic lost_i,  // a tile could not be read: what is at work fails, and the machine halts
    input logic [31:0] lost_addr_i,
    input logic aux_failed_i,  // with it: a row could not be read
    input logic [31:0] aux_detail_i,
    output logic aux_waits_o,

    // The end of a run, in order.
    output logic          done_o,    // one clock
    output fault_e        fault_o,
    output logic   [31:0] detail_o,  // instruction of the code space, or what the aux unit said
    output logic          logits_o,  // with done_o: the run has given logits

    output logic [15:0] number_o  // instruction that it is at
);
  if (AccVectors < 1 || AccVectors > MaxVectors) begin : gen_check
    $error("%m: AccVectors must be 1 to 4");
  end

  typedef enum logic [2:0] {
    Take,
    Look,
    Begin,
    Cut,
    Aux,
    Leave,
    Fault
  } state_e;

  state_e state_q;
  seat_step_t step_q;
  instr_t instr;
  post_e post;
  logic is_matvec, taken;
  assign instr = step_q.instr;
  assign post = post_e'(instr[0][10:8]);
  assign is_matvec = instr[0][7:0] == OpMatvec;
  assign step_ready_o = state_q == Take;
  assign number_o = step_q.number;

  // What has been put in order, and what of it has retired.
  mark_t count_q, retired_q;
  assign retired_o = retired_q;

  // Marks of the run's instructions: what must have retired when the results of one are read.
  mark_t table_mark, floor, floor_q, depends_mark, mark_q;
  logic [7:0] depends;
  assign depends = instr[6][23:16];
  lut_ram #(
      .Width(MarkW),
      .Words(256)
  ) u_marks (
      .clk_i,
      .we_i(state_q == Leave),
      .waddr_i(step_q.index),
      .wdata_i(count_q),
      .raddr_i(depends - 8'd1),
      .rdata_o(table_mark)
  );

  // Every instruction waits for the aux jobs before it, those of older runs too; section joint for section predict as well, as what that has left is
  // state. A run's first instruction, else, has nothing to wait for: what has retired already.
  logic  aux_held_q;
  mark_t aux_mark_q;
  always_comb begin
    floor = floor_q;
    if (step_q.is_first) begin
      if (step_q.section == SectionJoint) floor = count_q;
      else floor = aux_held_q ? aux_mark_q + mark_t'(1) : retired_q;
    end
  end
  // Of two marks the one that needs more is nearer to the count.
  always_comb begin
    depends_mark = (depends > step_q.index) ? count_q : table_mark;
    if (depends == '0 || mark_t'(count_q - floor) < mark_t'(count_q - depends_mark)) depends_mark = floor;
  end

  // Addresses of seat 0.
  localparam act_region_e State = (Thread == ThreadEncode) ? ActEnc : ActPred;
  localparam cell_region_e Cells = (Thread == ThreadEncode) ? CellEnc : CellPred;
  function automatic act_region_e region_of(input logic [1:0] space);
    return (space == InScratch) ? ActScratch : State;
  endfunction
  function automatic logic [SeatActW-1:0] act_of(input logic [15:0] field, input logic side);
    return act_base(region_of(field[15:14]), side) + SeatActW'(field[13:0]);
  endfunction

  // In place of c, where I16 goes: bank 0's place of joint_enc, or joint_pred.
  logic strides_cells;
  logic [15:0] kept_unit;
  logic [SeatCellW-1:0] cell_first_q;
  assign strides_cells = post == PostI16;
  assign kept_unit = (Thread == ThreadEncode) ? header_i.joint_enc_unit : header_i.joint_pred_unit;

  // The segment at hand: row group, and first vector of the pass.
  localparam logic [2:0] Pass = 3'(AccVectors);
  logic [15:0] group_q, scale_q, bias_q, sum_q, pass_sum_q;
  logic [23:0] tile_q;
  logic [2:0] vector_q, vectors_left_q;
  logic [SeatActW-1:0] source_q, pass_source_q, destination_q, pass_destination_q, second_q;
  logic [SeatCellW-1:0] pass_cell_q;
  logic last_pass, last_group;
  assign last_pass = vectors_left_q <= Pass;
  assign last_group = group_q + 16'd1 == instr[2][15:0];
  assign taken = seg_valid_o && seg_ready_i;

  assign seg_valid_o = state_q == Cut;
  assign seg_o = '{
          side: step_q.side,
          logit: post == PostLogit && mask_of(instr[0][24:21], instr) != '0,
          mark: mark_q,
          segment: '{
              thread: Thread,
              ends: last_pass && last_group,
              seats: step_q.seats,
              first_vector: vector_q[1:0],
              vectors_less_1: 2'((last_pass ? vectors_left_q : Pass) - 3'd1),
              tile: tile_q,
              col_tiles: instr[2][31:16],
              source: pass_source_q,
              source_stride: instr[3][31:16],
              source_shift: act_shift(region_of(instr[3][15:14])),
              first: mask_of(instr[0][20:17], instr),
              last: mask_of(instr[0][24:21], instr),
              sum_group: pass_sum_q,
              sum_stride: instr[2][15:0],
              scale_group: scale_q,
              bias_group: bias_q,
              post: post,
              group: group_q,
              shift: instr[6][27:24],
              qh: instr[6][31:28],
              i8_high: instr[5][22:16],
              i8_signed: instr[5][23],
              destination: pass_destination_q,
              destination_stride: instr[4][31:16],
              destination_shift: act_shift(region_of(instr[4][15:14])),
              second_valid: post == PostCell && instr[5][31:16] != NoSecond,
              second: second_q,
              second_shift: act_shift(region_of(instr[5][31:30])),
              cell_unit: pass_cell_q,
              cell_shift: cell_shift(Cells)
          }
      };

  // All vectors of a row group, then the next group: a pass that reads the group's tiles again does so soon.
  function automatic logic [19:0] strides(input logic [15:0] stride);  // of a pass
    return 20'(stride) * 20'(AccVectors);
  endfunction
  always_ff @(posedge clk_i) begin
    cell_first_q <= cell_base(
        Cells, step_q.side
    ) + (strides_cells ? SeatCellW'(kept_unit) + SeatCellW'(instr[4][13:0]) : SeatCellW'(instr[5][15:0]));
    if (state_q == Begin) begin
      group_q <= '0;
      tile_q <= instr[1][23:0];
      scale_q <= instr[7][15:0];
      bias_q <= instr[7][31:16];
      sum_q <= instr[6][15:0];
      pass_sum_q <= instr[6][15:0];
      source_q <= act_of(instr[3][15:0], step_q.side);
      pass_source_q <= act_of(instr[3][15:0], step_q.side);
      destination_q <= act_of(instr[4][15:0], step_q.side);
      pass_destination_q <= act_of(instr[4][15:0], step_q.side);
      second_q <= act_of(instr[5][31:16], step_q.side);
      pass_cell_q <= cell_first_q;
      vector_q <= '0;
      vectors_left_q <= vectors_of(instr);
    end else if (taken && last_pass) begin
      group_q <= group_q + 16'd1;
      tile_q <= tile_q + 24'(instr[2][31:16]);
      scale_q <= scale_q + 16'd1;
      bias_q <= bias_q + 16'd1;
      sum_q <= sum_q + 16'd1;
      pass_sum_q <= sum_q + 16'd1;
      pass_source_q <= source_q;
      pass_destination_q <= destination_q;
      pass_cell_q <= cell_first_q;
      vector_q <= '0;
      vectors_left_q <= vectors_of(instr);
    end else if (taken) begin
      pass_sum_q <= pass_sum_q + 16'(strides(instr[2][15:0]));
      pass_source_q <= pass_source_q + SeatActW'(strides(instr[3][31:16]));
      pass_destination_q <= pass_destination_q + SeatActW'(strides(instr[4][31:16]));
      if (strides_cells) pass_cell_q <= pass_cell_q + SeatCellW'(strides(instr[4][31:16]));
      vector_q <= vector_q + Pass;
      vectors_left_q <= vectors_left_q - Pass;
    end
  end

  // The aux job that waits or is at work.
  logic aux_taken_q, aux_side_q;
  assign aux_waits_o = aux_held_q;
  always_ff @(posedge clk_i) begin
    if (state_q == Aux && !aux_held_q) begin
      aux_side_q <= step_q.side;
      aux_mark_q <= count_q;
      aux_job_o <= '{
          thread: Thread,
          seats: step_q.seats,
          joint: instr[0][7:0] == OpJoint,
          row: instr[0][7:0] == OpLookup && instr[0][10:8] == 3'd0,
          embed_unit: instr[1],
          unit_count: (instr[0][7:0] == OpJoint) ? instr[2][15:0] : instr[2][31:16],
          joint_enc: cell_base(CellJoint, step_q.side) + SeatCellW'(instr[3][15:0]),
          joint_enc_shift: cell_shift(CellJoint),
          joint_pred:
          cell_base
          (
              CellPred, step_q.side
          ) +
          SeatCellW
          '(
          header_i.joint_pred_unit
          ) +
          SeatCellW
          '(
          instr[3][31:16]
          ),
          joint_pred_shift: cell_shift(CellPred),
          shift: instr[6][27:24],
          destination: act_of(instr[4][15:0], step_q.side),
          destination_shift: act_shift(region_of(instr[4][15:14]))
      };
    end
    aux_valid_o <= aux_held_q && !aux_taken_q && fetched_i[aux_side_q] && retired_q == aux_mark_q && !aux_taken_i;
    if (rst_i) begin
      aux_held_q  <= 1'b0;
      aux_taken_q <= 1'b0;
      aux_valid_o <= 1'b0;
    end else begin
      if (state_q == Aux && !aux_held_q) aux_held_q <= 1'b1;
      else if (aux_done_i) aux_held_q <= 1'b0;
      if (aux_taken_i) aux_taken_q <= 1'b1;
      else if (aux_done_i) aux_taken_q <= 1'b0;
    end
  end

  // The run that has been cut, but is not done.
  // A row that could not be read fails the run that the job was of, at its end.
  logic tail_q, tail_done, drained, run_q, aux_run_q;
  logic [1:0] failed_q, logits_q;  // by run_q, which changes from run to run
  logic [31:0] failed_detail_q;
  mark_t tail_mark_q;
  assign tail_done = tail_q && reached(retired_q, tail_mark_q);
  assign drained   = retired_q == count_q;

  always_ff @(posedge clk_i) begin
    done_o <= 1'b0;
    fault_o <= FaultNone;
    detail_o <= '0;
    retired_q <= retired_q + mark_t'(retire_i) + mark_t'(aux_done_i);
    if (state_q == Aux && !aux_held_q) aux_run_q <= run_q;
    if (aux_done_i && aux_failed_i) begin
      failed_q[aux_run_q] <= 1'b1;
      failed_detail_q <= aux_detail_i;
    end
    if (lost_i) begin
      failed_q <= '1;
      failed_detail_q <= lost_addr_i;
    end
    logits_o <= logits_q[run_q^tail_done];
    if (state_q == Begin && seg_o.logit) logits_q[run_q] <= 1'b1;
    if (tail_done) begin
      tail_q <= 1'b0;
      {failed_q[!run_q], logits_q[!run_q]} <= '0;
      done_o <= 1'b1;
      if (failed_q[!run_q]) begin
        fault_o  <= FaultBusRead;
        detail_o <= failed_detail_q;
      end
    end

    unique case (state_q)
      Take: begin
        step_q <= step_i;
        if (step_valid_i) state_q <= Look;
      end
      Look: begin
        mark_q  <= depends_mark;
        floor_q <= floor;
        if (step_q.fault != FaultNone) state_q <= Fault;
        else if (step_q.ends || step_q.seats == '0) state_q <= Leave;
        else state_q <= is_matvec ? Begin : Aux;
      end
      Begin: state_q <= Cut;
      Cut: begin
        if (taken && last_pass && last_group) begin
          count_q <= count_q + mark_t'(1);
          state_q <= Leave;
        end
      end
      Aux: begin
        if (!aux_held_q) begin
          count_q <= count_q + mark_t'(1);
          floor_q <= count_q + mark_t'(1);
          state_q <= Leave;
        end
      end
      Leave: begin
        if (!step_q.is_last) begin
          state_q <= Take;
        end else if (!tail_q) begin
          tail_q <= 1'b1;
          tail_mark_q <= count_q;
          run_q <= !run_q;
          state_q <= Take;
        end
      end
      default: begin
        if (drained && !tail_q) begin
          done_o <= 1'b1;
          fault_o <= step_q.fault;
          detail_o <= 32'(step_q.number);
          {failed_q[run_q], logits_q[run_q]} <= '0;
          state_q <= Take;
        end
      end
    endcase

    if (rst_i) begin
      state_q <= Take;
      count_q <= '0;
      retired_q <= '0;
      tail_q <= 1'b0;
      run_q <= 1'b0;
      failed_q <= '0;
      logits_q <= '0;
    end
  end

  logic unused;
  assign unused = &{1'b0, header_i};  // fields of other blocks
endmodule
