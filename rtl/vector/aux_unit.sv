// SPDX-License-Identifier: Apache-2.0
// LOOKUP and JOINT, one job at a time: activation units from the embedding, or the joint of two int16 vectors of the cell memory, written to scratch.
//
// Reads go out as fast as the memories take them; results wait in a queue for the activation memory's write port.
module aux_unit
  import gharial_pkg::*;
  import sequencer_pkg::*;
#(
    parameter int unsigned Rows = gharial_config_pkg::Rows,
    parameter int unsigned Cols = gharial_config_pkg::Cols
) (
    input logic clk_i,
    input logic rst_i,

    input  logic     job_valid_i,
    output logic     job_ready_o,
    input  aux_job_t job_i,
    output logic     done_o,       // one clock: all is written

    // Embedding memory; data two clocks later.
    output logic              embed_en_o,
    output logic [      31:0] embed_addr_o,  // activation unit
    input  logic [8*Cols-1:0] embed_data_i,

    // Cell memory; data two clocks after a read that was ready.
    output logic                 cell_re_o,
    input  logic                 cell_ready_i,
    output logic [CellAddrW-1:0] cell_raddr_o,
    input  logic [   4*Rows-1:0] cell_rdata_i,

    // Activation memory.
    output logic                act_we_o,
    input  logic                act_ready_i,
    output logic [ActAddrW-1:0] act_waddr_o,
    output logic [  8*Cols-1:0] act_wdata_o,
    output logic [    Cols-1:0] act_wmask_o
);
  localparam int unsigned Halves = Rows / 4;  // values of a cell unit
  localparam int unsigned PerUnit = (Halves < Cols) ? Cols / Halves : 1;  // cell units whose results fill an activation unit
  localparam int unsigned Queue = 8;

  if (Halves > Cols) begin : gen_check
    $error("%m: a cell unit's results must fit in an activation unit");
  end

  // Requests: the unit, and for JOINT which of its two vectors.
  aux_job_t job_q;
  logic busy_q, second_q, asks, asked;
  logic [15:0] unit_q;
  logic [ 3:0] on_way_q;  // units asked for and not written
  logic unit_asked, written;

  assign job_ready_o = !busy_q;
  assign asks = busy_q && unit_q != job_q.units && 32'(on_way_q) < Queue;
  assign cell_re_o = asks && job_q.joint;
  assign cell_raddr_o = (second_q ? job_q.joint_pred : job_q.joint_enc) + CellAddrW'(unit_q);
  assign embed_en_o = asks && !job_q.joint;
  assign embed_addr_o = job_q.embed_unit + 32'(unit_q);
  assign asked = asks && (!job_q.joint || cell_ready_i);
  assign unit_asked = asked && (!job_q.joint || second_q);

  // Data, by clocks after the request: 2 arrive, 3 summed, 4 rounded and clamped.
  typedef struct packed {
    logic valid;  // the last of the unit's requests
    logic first;  // joint_enc
    logic [15:0] unit_;
  } tag_t;
  tag_t tag_q[4];
  logic [4*Rows-1:0] enc_q;
  logic signed [16:0] sum_q[Halves];
  logic [8*Cols-1:0] embed_q[2];
  logic [Halves-1:0][7:0] joint_q;

  function automatic logic [7:0] rectified(input logic signed [16:0] value, input logic [3:0] shift);
    logic signed [17:0] wide;
    wide = 18'(value) + ((shift == '0) ? '0 : (18'sd1 <<< (shift - 4'd1)));
    wide = wide >>> shift;
    if (wide < 0) return 8'd0;
    if (wide > 18'sd127) return 8'd127;
    return wide[7:0];
  endfunction

  always_ff @(posedge clk_i) begin
    tag_q[0] <= '{valid: unit_asked, first: asked && job_q.joint && !second_q, unit_: unit_q};
    for (int i = 1; i < 4; i++) tag_q[i] <= tag_q[i-1];
    if (tag_q[1].first) enc_q <= cell_rdata_i;
    for (int i = 0; i < int'(Halves); i++) begin
      sum_q[i]   <= 17'(signed'(enc_q[16*i+:16])) + 17'(signed'(cell_rdata_i[16*i+:16]));
      joint_q[i] <= rectified(sum_q[i], job_q.shift);
    end
    embed_q[0] <= job_q.zero ? '0 : embed_data_i;
    embed_q[1] <= embed_q[0];

    if (rst_i) begin
      busy_q   <= 1'b0;
      done_o   <= 1'b0;
      on_way_q <= '0;
      for (int i = 0; i < 4; i++) tag_q[i] <= '0;
    end else begin
      done_o   <= 1'b0;
      on_way_q <= on_way_q + 4'(unit_asked) - 4'(written);
      if (!busy_q) begin
        job_q <= job_i;
        unit_q <= '0;
        second_q <= 1'b0;
        busy_q <= job_valid_i;
      end else begin
        if (asked && job_q.joint) second_q <= !second_q;
        if (unit_asked) unit_q <= unit_q + 16'd1;
        if (unit_q == job_q.units && on_way_q == '0) begin
          busy_q <= 1'b0;
          done_o <= 1'b1;
        end
      end
    end
  end

  // Where a unit's result goes: a whole activation unit, or the lanes of one.
  typedef struct packed {
    logic [ActAddrW-1:0] addr;
    logic [8*Cols-1:0] data;
    logic [Cols-1:0] mask;
  } write_t;
  write_t made, queued;
  logic [15:0] made_unit;
  assign made_unit = tag_q[3].unit_;
  always_comb begin
    made = '{addr: job_q.destination + ActAddrW'(made_unit), data: embed_q[1], mask: '1};
    if (job_q.joint) begin
      made.addr = job_q.destination + ActAddrW'(made_unit / 16'(PerUnit));
      for (int part = 0; part < int'(PerUnit); part++) begin
        made.data[8*Halves*part+:8*Halves] = joint_q;
        made.mask[Halves*part+:Halves] = {Halves{made_unit % 16'(PerUnit) == 16'(part)}};
      end
    end
  end

  logic queue_ready;  // always: no more is asked for than fits
  small_fifo #(
      .Width($bits(write_t)),
      .Depth(Queue)
  ) u_queue (
      .clk_i,
      .rst_i,
      .push_valid_i(tag_q[3].valid),
      .push_ready_o(queue_ready),
      .push_data_i (made),
      .pop_valid_o (act_we_o),
      .pop_ready_i (act_ready_i),
      .pop_data_o  (queued)
  );
  assign {act_waddr_o, act_wdata_o, act_wmask_o} = queued;
  assign written = act_we_o && act_ready_i;

`ifdef FORMAL
  always_ff @(posedge clk_i) if (!rst_i && tag_q[3].valid) assert (queue_ready);
`endif
endmodule
