// SPDX-License-Identifier: Apache-2.0
// The finish unit's side of the activations: packs h and writes it to one or two places; packs and writes I8.
//
// What is written is an activation unit, or the h of a row group where that has fewer bytes. Timing, with h of a slice in clock n: what is
// complete with it is written in n + 1, and again to its second place in n + 2. I8 of a slice comes in n + 1 and is written from n + 2 on.
// The three never meet, since h takes two slices at least and I8 comes a clock later.
module activation_packer
  import seat_pkg::*;
  import slice_pkg::*;
(
    input logic clk_i,
    input logic rst_i,

    output logic                act_we_o,
    output logic [SeatActW-1:0] act_waddr_o,
    output logic [  8*Cols-1:0] act_wdata_o,
    output logic [    Cols-1:0] act_wmask_o,

    // Clock n.
    input logic              valid_i,
    input slice_act_t        slice_i,
    input logic signed [7:0] h_i    [Lanes],

    // Clock n + 1.
    input logic [SliceRows-1:0][7:0] i8_i
);
  localparam int unsigned HBytes = (Halves < Cols) ? Halves : Cols;  // of h that are written at once
  localparam int unsigned HParts = Cols / HBytes;
  localparam logic [ByteW-1:0] HLast = ByteW'(HBytes - Lanes);  // first byte of the last slice among them

  // h
  logic [Lanes-1:0][7:0] h_new;
  logic [Cols/Lanes-1:0][Lanes-1:0][7:0] h_q;
  logic full_q, second_valid_q, again_q;
  logic [Cols-1:0] full_mask_q, again_mask_q;
  logic [SeatActW-1:0] target_q, second_q;

  always_comb for (int unsigned n = 0; n < Lanes; n++) h_new[n] = unsigned'(h_i[n]);

  always_ff @(posedge clk_i) begin
    full_q  <= valid_i && slice_i.is_cell && (slice_i.first_byte & ByteW'(HBytes - 1)) == HLast && !rst_i;
    again_q <= full_q && second_valid_q && !rst_i;
    for (int unsigned n = 0; n < HParts; n++) begin
      full_mask_q[HBytes*n+:HBytes] <= {HBytes{32'(slice_i.first_byte) / HBytes == n}};
    end
    if (valid_i && slice_i.is_cell) h_q[slice_i.first_byte>>LanesW] <= h_new;
    target_q <= slice_i.target;
    second_valid_q <= slice_i.second_valid;
    second_q <= slice_i.second;
  end

  // Second copies and I8 share a register.
  logic i8_q, i8_write;
  logic [ByteW-1:0] first_byte_q;
  logic [8*Cols-1:0] later_q;
  logic [SeatActW-1:0] later_target_q;

  always_ff @(posedge clk_i) begin
    i8_q <= valid_i && slice_i.is_i8 && !rst_i;
    first_byte_q <= slice_i.first_byte;
  end

  if (SliceRows <= Cols) begin : gen_part
    localparam int unsigned Parts = Cols / SliceRows;  // slices of I8 that an activation unit holds
    logic i8_full_q;

    always_ff @(posedge clk_i) begin
      i8_full_q <= i8_q && first_byte_q == ByteW'(Cols - SliceRows) && !rst_i;
      later_target_q <= i8_q ? target_q : second_q;
      again_mask_q <= i8_q ? '1 : full_mask_q;
      for (int unsigned n = 0; n < Parts; n++) begin
        if (full_q) later_q[8*SliceRows*n+:8*SliceRows] <= h_q[4*n+:4];
        else if (i8_q && 32'(first_byte_q) / SliceRows == n) later_q[8*SliceRows*n+:8*SliceRows] <= i8_i;
      end
    end
    assign i8_write = i8_full_q;
  end else begin : gen_several
    localparam int unsigned LeftW = $clog2(I8Writes + 1);
    logic [LeftW-1:0] left_q;  // units to be written
    logic [I8Writes-1:1][8*Cols-1:0] rest_q;

    always_ff @(posedge clk_i) begin
      if (rst_i) left_q <= '0;
      else if (i8_q) left_q <= LeftW'(I8Writes);
      else if (left_q != '0) left_q <= left_q - 1'b1;

      if (i8_q) {rest_q, later_q} <= i8_i;
      else if (full_q) later_q <= h_q;
      else begin
        later_q <= rest_q[1];
        for (int unsigned n = 1; n < I8Writes - 1; n++) rest_q[n] <= rest_q[n+1];
      end
      if (i8_q) later_target_q <= target_q;
      else if (full_q) later_target_q <= second_q;
      else later_target_q <= later_target_q + 1'b1;
      again_mask_q <= full_q ? full_mask_q : '1;
    end
    assign i8_write = left_q != '0;

    logic unused;
    assign unused = &{1'b0, first_byte_q};  // always 0 with I8
  end

  assign act_we_o = full_q || again_q || i8_write;
  assign act_waddr_o = full_q ? target_q : later_target_q;
  assign act_wdata_o = full_q ? h_q : later_q;
  assign act_wmask_o = full_q ? full_mask_q : again_mask_q;

`ifdef FORMAL
  always_ff @(posedge clk_i) begin
    if (!rst_i) a_one : assert ($onehot0({full_q, again_q, i8_write}));
  end
`endif  // FORMAL
endmodule
