// SPDX-License-Identifier: Apache-2.0
// Cuts a run of bytes into INCR bursts that cross no 4 KiB border, as addresses and lengths, for either side of an AXI4 master. A run is taken when the
// one before has been cut; the first burst comes two clocks later, the next ones every second clock.
module move_bursts #(
    parameter int unsigned PortBytes = 8,
    parameter int unsigned RunW = 24
) (
    input logic clk_i,
    input logic rst_i,
    input logic hold_i, // no new bursts; one that is offered stays

    input  logic            run_valid_i,
    output logic            run_ready_o,
    input  logic [    63:0] run_addr_i,
    input  logic [RunW-1:0] run_bytes_i,  // at least 1

    output logic        burst_valid_o,
    input  logic        burst_ready_i,
    output logic [63:0] burst_addr_o,   // a multiple of PortBytes
    output logic [ 7:0] burst_len_o     // beats less 1
);
  localparam int unsigned PortW = $clog2(PortBytes);
  localparam int unsigned BeatsW = RunW - PortW + 2;
  localparam int unsigned BorderW = 12 - PortW;  // log2 of beats between two borders

  typedef enum logic [1:0] {
    Idle,
    Cut,
    Offer
  } state_e;

  state_e state_q;
  logic [63-PortW:0] addr_q;
  logic [BeatsW-1:0] left_q;
  logic [8:0] beats, beats_q;
  logic [BorderW:0] to_border;
  logic [ RunW+1:0] run_end;

  assign to_border = {1'b1, {BorderW{1'b0}}} - {1'b0, addr_q[BorderW-1:0]};
  always_comb begin
    beats = 9'd256;
    if (32'(to_border) < 256) beats = 9'(to_border);
    if (32'(left_q) < 32'(beats)) beats = 9'(left_q);
  end

  assign run_end = (RunW + 2)'(run_bytes_i) + (RunW + 2)'(run_addr_i[PortW-1:0]) + (RunW + 2)'(PortBytes - 1);
  assign run_ready_o = state_q == Idle && !hold_i;
  assign burst_valid_o = state_q == Offer;
  assign burst_addr_o = {addr_q, {PortW{1'b0}}};
  assign burst_len_o = 8'(beats_q - 9'd1);

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Idle: begin
        addr_q <= run_addr_i[63:PortW];
        left_q <= BeatsW'(run_end >> PortW);
        if (run_valid_i && run_ready_o) state_q <= Cut;
      end
      Cut: begin
        beats_q <= beats;
        state_q <= hold_i ? Idle : Offer;
      end
      default: begin
        if (burst_ready_i) begin
          addr_q  <= addr_q + (64 - PortW)'(beats_q);
          left_q  <= left_q - BeatsW'(beats_q);
          state_q <= (left_q == BeatsW'(beats_q) || hold_i) ? Idle : Cut;
        end
      end
    endcase
    if (rst_i) state_q <= Idle;
  end
endmodule
