// SPDX-License-Identifier: Apache-2.0
// Soft reset: holds the host block, frees the slots of commands on their way, lets the bus come to rest, then resets everything but program,
// slots and memories.
// A bus that does not answer is given up after Patience clocks.
module soft_reset #(
    parameter int unsigned Patience = 4096
) (
    input logic clk_i,
    input logic rst_i,

    input  logic request_i,       // one clock
    input  logic bus_idle_i,
    input  logic purged_i,        // no command is left
    output logic hold_o,          // host stages are held in reset
    output logic purge_o,
    output logic drop_pending_o,  // one clock, the first
    output logic reset_o          // two clocks, the last: all units; those of the engine have it a clock later
);
  localparam int unsigned WaitW = $clog2(Patience + 1);

  typedef enum logic [2:0] {
    Idle,
    First,
    Purge,
    Rest,
    Reset,
    Settle
  } state_e;

  state_e state_q;
  logic [WaitW-1:0] wait_q;

  assign drop_pending_o = state_q == First;
  assign purge_o = state_q == Purge;

  always_ff @(posedge clk_i) begin
    wait_q <= wait_q + WaitW'(1);
    unique case (state_q)
      Idle: begin
        wait_q <= '0;
        if (request_i) begin
          hold_o  <= 1'b1;
          state_q <= First;
        end
      end
      First: state_q <= Purge;
      Purge: if (purged_i) state_q <= Rest;
      Rest: begin
        if (bus_idle_i || 32'(wait_q) == Patience) begin
          reset_o <= 1'b1;
          state_q <= Reset;
        end
      end
      Reset: state_q <= Settle;
      default: begin
        hold_o  <= 1'b0;
        reset_o <= 1'b0;
        state_q <= Idle;
      end
    endcase
    if (rst_i) begin
      hold_o  <= 1'b0;
      reset_o <= 1'b0;
      state_q <= Idle;
    end
  end
endmodule
