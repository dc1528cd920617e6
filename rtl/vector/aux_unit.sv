// SPDX-License-Identifier: Apache-2.0
// LOOKUP and JOINT, one job at a time: activation units from the embedding, or the joint of two int16 vectors of the cell memory, written to scratch.
//
// Reads go out as fast as the memories take them; results wait in a queue for the activation memory's write port. A unit's result is in the
// queue four clocks after its last read.
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
    output logic     done_o,       // one clock: all is written with this clock

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
  logic busy_q, second_q, last_q, asks, asked, unit_asked;
  logic [15:0] unit_q;
  logic [$clog2(Queue+1)-1:0] room_q;  // places of the queue that nothing is on the way to
  logic written;

  assign job_ready_o = !busy_q;
  assign asks = busy_q && !last_q && room_q != '0;
  assign cell_re_o = asks && job_q.joint;
  assign cell_raddr_o = (second_q ? job_q.joint_pred : job_q.joint_enc) + unit_q;
  assign embed_en_o = asks && !job_q.joint;
  assign embed_addr_o = job_q.embed_unit + 32'(unit_q);
  assign asked = asks && (!job_q.joint || cell_ready_i);
  assign unit_asked = asked && (!job_q.joint || second_q);

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      busy_q <= 1'b0;
      room_q <= Queue[$bits(room_q)-1:0];
    end else begin
      if (job_ready_o) busy_q <= job_valid_i;
      else if (done_o) busy_q <= 1'b0;
      room_q <= room_q + $bits(room_q)'(written) - $bits(room_q)'(unit_asked);
    end

    if (job_ready_o) begin
      job_q <= job_i;
      unit_q <= '0;
      second_q <= 1'b0;
      last_q <= 1'b0;
    end else begin
      if (asked && job_q.joint) second_q <= !second_q;
      if (unit_asked) begin
        unit_q <= unit_q + 16'd1;
        last_q <= unit_q + 16'd1 == job_q.unit_count;
      end
    end
  end

  // Data, by clocks after the last request: in 2 they arrive, in 3 they are summed, in 4 shifted and go to the queue.
  logic [4:1] valid_q, last_unit_q;
  logic [2:1] first_q;  // joint_enc
  logic [15:0] place_q[5];
  logic [4*Rows-1:0] enc_q;
  logic signed [16:0] sum_q[Halves];
  logic [17:0] shifted_q[Halves];  // the lowest bit is the rounding bit
  logic [8*Cols-1:0] embed_q[2];
  logic [Halves-1:0][7:0] joint;

  assign place_q[0] = unit_q;

  always_ff @(posedge clk_i) begin
    valid_q <= rst_i ? '0 : {valid_q[3:1], unit_asked};
    last_unit_q <= {last_unit_q[3:1], unit_q + 16'd1 == job_q.unit_count};
    first_q <= {first_q[1], asked && !second_q};
    for (int n = 1; n < 5; n++) place_q[n] <= place_q[n-1];
    if (first_q[2]) enc_q <= cell_rdata_i;
    embed_q[0] <= job_q.zero ? '0 : embed_data_i;
    embed_q[1] <= embed_q[0];
  end

  for (genvar n = 0; n < Halves; n++) begin : gen_value
    logic [17:0] rounded;

    // A negative sum gives 0 whatever its shift: it goes on as 0.
    always_ff @(posedge clk_i) begin
      sum_q[n] <= 17'(signed'(enc_q[16*n+:16])) + 17'(signed'(cell_rdata_i[16*n+:16]));
      shifted_q[n] <= sum_q[n][16] ? '0 : {unsigned'(sum_q[n]), 1'b0} >> job_q.shift;
    end

    assign rounded  = 18'(shifted_q[n][17:1]) + 18'(shifted_q[n][0]);
    assign joint[n] = (rounded > 18'd127) ? 8'd127 : rounded[7:0];
  end

  // Where a unit's result goes: a whole activation unit, or the lanes of one.
  typedef struct packed {
    logic last;
    logic [ActAddrW-1:0] addr;
    logic [Cols-1:0] mask;
    logic [8*Cols-1:0] data;
  } write_t;

  write_t made, queued;
  logic room;

  always_comb begin
    made.last = last_unit_q[4];
    if (job_q.joint) begin
      made.addr = job_q.destination + ActAddrW'(place_q[4] / 16'(PerUnit));
      made.data = {PerUnit{joint}};
      for (int unsigned part = 0; part < PerUnit; part++) begin
        made.mask[Halves*part+:Halves] = {Halves{place_q[4] % 16'(PerUnit) == 16'(part)}};
      end
    end else begin
      made.addr = job_q.destination + place_q[4];
      made.data = embed_q[1];
      made.mask = '1;
    end
  end

  small_fifo #(
      .Width($bits(write_t)),
      .Depth(Queue)
  ) u_queue (
      .clk_i,
      .rst_i,
      .push_valid_i(valid_q[4]),
      .push_ready_o(room),
      .push_data_i (made),
      .pop_valid_o (act_we_o),
      .pop_ready_i (act_ready_i),
      .pop_data_o  (queued)
  );

  assign act_waddr_o = queued.addr;
  assign act_wdata_o = queued.data;
  assign act_wmask_o = queued.mask;
  assign written = act_we_o && act_ready_i;
  assign done_o = written && queued.last;

`ifdef FORMAL
  always_ff @(posedge clk_i) begin
    if (!rst_i && valid_q[4]) a_room : assert (room);
  end
`else
  logic unused;
  assign unused = room;
`endif  // FORMAL
endmodule
