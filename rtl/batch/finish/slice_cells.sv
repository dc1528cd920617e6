// SPDX-License-Identifier: Apache-2.0
// The finish unit's side of the cells: reads c of a (seat, row group) once and hands it out slice by slice, writes the new c and the outputs of I16.
//
// Timing: a slice's c is asked for in clock n and comes out in n + 4, the word being read with slice 0. New c or I16 of clock m is written in m + 1;
// I16 that fills several cell units, one a clock from then on: its next slice comes no sooner.
module slice_cells
  import seat_pkg::*;
  import slice_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    // Cells; data two clocks after the address.
    output logic                 cell_re_o,
    output logic [SeatCellW-1:0] cell_raddr_o,
    input  logic [16*Halves-1:0] cell_rdata_i,
    output logic                 cell_we_o,
    output logic [SeatCellW-1:0] cell_waddr_o,
    output logic [16*Halves-1:0] cell_wdata_o,
    output logic [   Halves-1:0] cell_wmask_o,

    // Clock n, and the data in n + 4.
    input  logic               read_valid_i,
    input  slice_cell_t        read_i,
    output logic signed [15:0] c_o         [Lanes],

    // Clock m.
    input logic                              write_valid_i,
    input slice_cell_t                       write_i,
    input logic signed [         15:0]       new_c_i      [Lanes],
    input logic        [SliceRows-1:0][15:0] i16_i
);
  // c. Others may read meanwhile, so the word is kept here.
  logic [1:0] fetched_q;
  logic [SliceW-1:0] slice_q[3];
  logic [Slices-1:0][Lanes-1:0][15:0] held_q;
  logic [Lanes-1:0][15:0] wanted;

  assign cell_re_o = read_valid_i && read_i.is_cell && read_i.slice == '0;
  assign cell_raddr_o = read_i.addr;
  assign wanted = held_q[slice_q[2]];

  always_ff @(posedge clk_i) begin
    fetched_q  <= rst_i ? '0 : {fetched_q[0], cell_re_o};
    slice_q[0] <= read_i.slice;
    slice_q[1] <= slice_q[0];
    slice_q[2] <= slice_q[1];
    if (fetched_q[1]) held_q <= cell_rdata_i;
    for (int unsigned n = 0; n < Lanes; n++) c_o[n] <= signed'(wanted[n]);
  end

  logic unused;
  assign unused = &{1'b0, read_i.is_i16};

  // Writes.
  logic new_c, i16;
  logic [Lanes-1:0][15:0] new_word;

  assign new_c = write_valid_i && write_i.is_cell;
  assign i16   = write_valid_i && write_i.is_i16;
  always_comb for (int unsigned n = 0; n < Lanes; n++) new_word[n] = unsigned'(new_c_i[n]);

  if (SliceRows <= Halves) begin : gen_part
    localparam int unsigned Parts = Halves / SliceRows;  // slices of I16 that a cell unit holds
    logic [Halves-1:0] i16_mask;

    if (Parts == 1) begin : gen_whole
      assign i16_mask = '1;
    end else begin : gen_some
      always_comb
        for (int unsigned n = 0; n < Parts; n++)
          i16_mask[SliceRows*n+:SliceRows] = {SliceRows{write_i.slice % SliceW'(Parts) == SliceW'(n)}};
    end

    always_ff @(posedge clk_i) begin
      cell_we_o <= (new_c || i16) && !rst_i;
      cell_waddr_o <= write_i.addr;
      cell_wdata_o <= write_i.is_cell ? {Slices{new_word}} : {Parts{i16_i}};
      for (int unsigned n = 0; n < Slices; n++) begin
        cell_wmask_o[Lanes*n+:Lanes] <= write_i.is_cell ? {Lanes{write_i.slice == SliceW'(n)}} : i16_mask[Lanes*n+:Lanes];
      end
    end
  end else begin : gen_several
    localparam int unsigned LeftW = $clog2(I16Writes);
    logic [LeftW-1:0] left_q;  // units still to be written
    logic [I16Writes-1:1][16*Halves-1:0] rest_q;

    always_ff @(posedge clk_i) begin
      cell_we_o <= (new_c || i16 || left_q != '0) && !rst_i;
      if (rst_i) left_q <= '0;
      else if (i16) left_q <= LeftW'(I16Writes - 1);
      else if (left_q != '0) left_q <= left_q - 1'b1;

      if (left_q != '0) begin
        cell_waddr_o <= cell_waddr_o + 1'b1;
        cell_wdata_o <= rest_q[1];
        for (int unsigned n = 1; n < I16Writes - 1; n++) rest_q[n] <= rest_q[n+1];
      end else begin
        cell_waddr_o <= write_i.addr;
        cell_wdata_o <= write_i.is_cell ? {Slices{new_word}} : i16_i[Halves-1:0];
        rest_q <= i16_i[SliceRows-1:Halves];
      end
      for (int unsigned n = 0; n < Slices; n++) begin
        cell_wmask_o[Lanes*n+:Lanes] <= {Lanes{left_q != '0 || !write_i.is_cell || write_i.slice == SliceW'(n)}};
      end
    end

`ifdef FORMAL
    always_ff @(posedge clk_i) begin
      if (!rst_i) a_alone : assert (left_q == '0 || !(new_c || i16));
    end
`endif  // FORMAL
  end
endmodule
