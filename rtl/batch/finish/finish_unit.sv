// SPDX-License-Identifier: Apache-2.0
// Finishes the array unit's results, a slice (Lanes times four rows of one seat and vector) a clock: requantises, adds to the sums, applies the
// post-operation and writes where its output belongs. Contract, and the clock of each stage: docs/blocks/finish_unit.md. Nothing after the
// walk ever waits.
//
// Signals that change their meaning from clock to clock carry the number of their clock, 0 being the one in which a result is taken.
module finish_unit
  import gharial_pkg::*;
  import seat_pkg::*;
  import slice_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    // Scales, biases and tables, by words of the space.
    input logic          load_valid_i,
    input space_e        load_space_i,
    input logic   [26:0] load_addr_i,
    input logic   [31:0] load_data_i,

    // Segments, in the order of the array unit's.
    input  logic     seg_valid_i,
    output logic     seg_ready_o,
    input  segment_t seg_i,

    // Results of the array unit.
    input  logic                     res_valid_i,
    output logic                     res_ready_o,
    input  logic signed [      31:0] res_sums_i  [SliceRows],
    input  logic        [ SeatW-1:0] res_seat_i,
    input  logic        [       1:0] res_vector_i,             // of the instruction
    input  logic        [SliceW-1:0] res_slice_i,
    input  logic                     res_last_i,               // of the segment

    // Cells; data two clocks after the address.
    output logic                 cell_re_o,
    output logic [SeatCellW-1:0] cell_raddr_o,
    input  logic [16*Halves-1:0] cell_rdata_i,
    output logic                 cell_we_o,
    output logic [SeatCellW-1:0] cell_waddr_o,
    output logic [16*Halves-1:0] cell_wdata_o,
    output logic [   Halves-1:0] cell_wmask_o,

    // Activations.
    output logic                act_we_o,
    output logic [SeatActW-1:0] act_waddr_o,
    output logic [  8*Cols-1:0] act_wdata_o,
    output logic [    Cols-1:0] act_wmask_o,

    // Logits.
    output logic                    logit_valid_o,
    output logic        [SeatW-1:0] logit_seat_o,
    output logic        [     15:0] logit_slice_o,             // of the instruction
    output logic signed [     15:0] logit_data_o [SliceRows],
    output logic                    logit_last_o,              // of the instruction

    // Finished instructions: all that they write can be read.
    output logic    retire_valid_o,
    output thread_e retire_thread_o
);
  // Clocks of the stages.
  localparam int unsigned ControlAt = 4;
  localparam int unsigned SumReadAt = 5;
  localparam int unsigned ArgumentAt = 8;  // new sums, which are written; function tables are addressed
  localparam int unsigned CellReadAt = 10;
  localparam int unsigned OutputAt = 10;  // y
  localparam int unsigned Int8At = 12;
  localparam int unsigned NewCellAt = 21;  // written in the next clock
  localparam int unsigned NewHAt = 30;
  localparam int unsigned RetireAt = NewHAt + 2 + I8Writes;  // after the last write

  // Clocks 0 to 4: which slice this is, and what becomes of it.
  logic valid4, fresh4, keep4, ends4, i8_signed4;
  thread_e thread4;
  logic [SumAddrW-1:0] sum_addr4;
  logic [BiasAddrW-1:0] bias_addr4;
  logic [3:0] shift4, qh4;
  logic [6:0] i8_high4;
  slice_act_t act4;
  slice_cell_t cell4;
  slice_logit_t logit4;
  logic scale_en;
  logic [ScaleAddrW-1:0] scale_addr;

  finish_walk #(
      .CellClocks(NewCellAt + 1 - CellReadAt + 1),
      .SumClocks (ArgumentAt - SumReadAt + 1)
  ) u_walk (
      .clk_i,
      .rst_i,
      .seg_valid_i,
      .seg_ready_o,
      .seg_i,
      .res_valid_i,
      .res_ready_o,
      .res_seat_i,
      .res_vector_i,
      .res_slice_i,
      .res_last_i,
      .scale_en_o(scale_en),
      .scale_addr_o(scale_addr),
      .valid_o(valid4),
      .fresh_o(fresh4),
      .keep_o(keep4),
      .ends_o(ends4),
      .thread_o(thread4),
      .sum_addr_o(sum_addr4),
      .bias_addr_o(bias_addr4),
      .shift_o(shift4),
      .qh_o(qh4),
      .i8_high_o(i8_high4),
      .i8_signed_o(i8_signed4),
      .act_o(act4),
      .cell_o(cell4),
      .logit_o(logit4)
  );

  // Which clocks a slice is in, and which the last one of an instruction.
  logic [NewHAt:ControlAt+1] valid_q;
  logic [RetireAt:ControlAt+1] ends_q, thread_q;

  always_ff @(posedge clk_i) begin
    valid_q  <= rst_i ? '0 : {valid_q[NewHAt-1:ControlAt+1], valid4};
    ends_q   <= rst_i ? '0 : {ends_q[RetireAt-1:ControlAt+1], valid4 && ends4};
    thread_q <= {thread_q[RetireAt-1:ControlAt+1], thread4};
  end

  assign retire_valid_o  = ends_q[RetireAt];
  assign retire_thread_o = thread_e'(thread_q[RetireAt]);

  // Control where it is needed.
  logic [3:0] qc8, qh8, shift10;
  logic [6:0] i8_high10;
  logic i8_signed10;
  slice_logit_t logit10;
  slice_cell_t cell10, cell21;
  slice_act_t act30;

  delay_line #(
      .Width (8),
      .Clocks(ArgumentAt - ControlAt)
  ) u_to_argument (
      .clk_i,
      .rst_i,
      .data_i({shift4, qh4}),
      .data_o({qc8, qh8})
  );

  delay_line #(
      .Width (12 + $bits(slice_logit_t) + $bits(slice_cell_t)),
      .Clocks(OutputAt - ControlAt)
  ) u_to_output (
      .clk_i,
      .rst_i,
      .data_i({shift4, i8_high4, i8_signed4, logit4, cell4}),
      .data_o({shift10, i8_high10, i8_signed10, logit10, cell10})
  );

  delay_line #(
      .Width ($bits(slice_cell_t)),
      .Clocks(NewCellAt - OutputAt)
  ) u_to_new_cell (
      .clk_i,
      .rst_i,
      .data_i(cell10),
      .data_o(cell21)
  );

  delay_line #(
      .Width ($bits(slice_act_t)),
      .Clocks(NewHAt - ControlAt)
  ) u_to_new_h (
      .clk_i,
      .rst_i,
      .data_i(act4),
      .data_o(act30)
  );

  // Clock 2: accumulators meet their scale words.
  logic signed [31:0] acc1_q[SliceRows], acc2_q[SliceRows];
  logic [SliceRows-1:0][31:0] scale2;

  always_ff @(posedge clk_i) begin
    acc1_q <= res_sums_i;
    acc2_q <= acc1_q;
  end

  seat_program #(
      .Width(32 * SliceRows),
      .Words(ScaleWords)
  ) u_scales (
      .clk_i,
      .load_valid_i(load_valid_i && load_space_i == SpaceScales),
      .load_addr_i,
      .load_data_i,
      .re_i(scale_en),
      .raddr_i(scale_addr),
      .rdata_o(scale2)
  );

  logic [SliceRows-1:0][31:0] start7, sum8;

  slice_sums u_sums (
      .clk_i,
      .rst_i,
      .load_valid_i,
      .load_space_i,
      .load_addr_i,
      .load_data_i,
      .valid_i(valid4),
      .fresh_i(fresh4),
      .keep_i(keep4),
      .sum_addr_i(sum_addr4),
      .bias_addr_i(bias_addr4),
      .start_o(start7),
      .sum_i(sum8)
  );

  // Clocks 2 to 30: arithmetic.
  logic signed [15:0] y10[SliceRows];
  logic signed [15:0] c14[Lanes], c21[Lanes];
  logic signed [7:0] h30[Lanes];
  logic [SliceRows-1:0][7:0] i8_12, i8_31;
  logic [SliceRows-1:0][15:0] y10_word, i16_21;

  for (genvar n = 0; n < int'(Lanes); n++) begin : gen_lane
    logic signed [31:0] acc[4];
    logic [22:0] scale[4];
    logic [31:0] start[4], sum[4];
    logic signed [15:0] y [4];
    logic signed [ 7:0] i8[4];

    for (genvar r = 0; r < 4; r++) begin : gen_row
      assign acc[r] = acc2_q[4*n+r];
      assign scale[r] = scale2[4*n+r][22:0];
      assign start[r] = start7[4*n+r];
      assign sum8[4*n+r] = sum[r];
      assign y10[4*n+r] = y[r];
      assign y10_word[4*n+r] = y[r];
      assign i8_12[4*n+r] = i8[r];
      logic unused_upper;
      assign unused_upper = &{1'b0, scale2[4*n+r][31:23]};
    end

    finish_lane u_lane (
        .clk_i,
        .rst_i,
        .load_valid_i(load_valid_i && load_space_i == SpaceTables),
        .load_addr_i(load_addr_i[15:0]),
        .load_data_i,
        .acc_i(acc),
        .scale_i(scale),
        .start_i(start),
        .sum_o(sum),
        .y_o(y),
        .qc_i(qc8),
        .qh_i(qh8),
        .c_i(c14[n]),
        .c_o(c21[n]),
        .h_o(h30[n]),
        .shift_i(shift10),
        .high_i(i8_high10),
        .signed_i(i8_signed10),
        .i8_o(i8)
    );
  end

  // Outputs.
  assign logit_valid_o = valid_q[OutputAt] && logit10.is_logit;
  assign logit_seat_o  = logit10.seat;
  assign logit_slice_o = logit10.number;
  assign logit_data_o  = y10;
  assign logit_last_o  = logit10.last;

  // I16 and I8 go with the new c and h, so that each memory is written in the order of the slices.
  delay_line #(
      .Width (16 * SliceRows),
      .Clocks(NewCellAt - OutputAt)
  ) u_i16 (
      .clk_i,
      .rst_i,
      .data_i(y10_word),
      .data_o(i16_21)
  );

  delay_line #(
      .Width (8 * SliceRows),
      .Clocks(NewHAt + 1 - Int8At)
  ) u_i8 (
      .clk_i,
      .rst_i,
      .data_i(i8_12),
      .data_o(i8_31)
  );

  slice_cells u_cells (
      .clk_i,
      .rst_i,
      .cell_re_o,
      .cell_raddr_o,
      .cell_rdata_i,
      .cell_we_o,
      .cell_waddr_o,
      .cell_wdata_o,
      .cell_wmask_o,
      .read_valid_i(valid_q[CellReadAt]),
      .read_i(cell10),
      .c_o(c14),
      .write_valid_i(valid_q[NewCellAt]),
      .write_i(cell21),
      .new_c_i(c21),
      .i16_i(i16_21)
  );

  activation_packer u_activations (
      .clk_i,
      .rst_i,
      .act_we_o,
      .act_waddr_o,
      .act_wdata_o,
      .act_wmask_o,
      .valid_i(valid_q[NewHAt]),
      .slice_i(act30),
      .h_i(h30),
      .i8_i(i8_31)
  );

  logic unused;
  assign unused = &{1'b0, load_addr_i[26:16]};  // of the tables
endmodule
