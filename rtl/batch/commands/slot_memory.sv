// SPDX-License-Identifier: Apache-2.0
// The slot table in block RAM: a word for each encoder slot, then each prediction slot. One edit after another: the word is read, told, and written back changed.
module slot_memory
  import slot_pkg::*;
#(
    parameter int unsigned EncSlots = 64,
    parameter int unsigned PredSlots = 256,
    parameter int unsigned Users = 4
) (
    input logic clk_i,
    input logic rst_i,

    input  logic clear_i,    // one clock: all slots become free
    output logic clearing_o, // so they do: nobody is served

    // The first user comes first. Slot numbers lie within the slots there are.
    input  logic       valid_i[Users],
    output logic       ready_o[Users],
    input  slot_edit_t edit_i [Users],
    output logic       told_o [Users],  // one clock
    output slot_t      slot_o           // with it: as the slot was
);
  localparam int unsigned Words = EncSlots + PredSlots;
  localparam int unsigned AddrW = $clog2(Words);

  typedef enum logic [2:0] {
    Clear,
    Idle,
    Read,
    Wait,
    Told,
    Write
  } state_e;

  state_e state_q;
  slot_edit_t edit_q, edit;
  logic [AddrW-1:0] addr_q;
  slot_t word, slot_q;
  logic mine_q[Users], clear_q, any;
  assign clearing_o = state_q == Clear || clear_q || clear_i;
  assign slot_o = slot_q;

  always_comb begin
    any  = 1'b0;
    edit = '0;
    for (int u = 0; u < int'(Users); u++) begin
      ready_o[u] = state_q == Idle && !clearing_o && valid_i[u] && !any;
      if (ready_o[u]) begin
        any  = 1'b1;
        edit = edit_i[u];
      end
    end
  end

  for (genvar u = 0; u < Users; u++) begin : gen_told
    assign told_o[u] = state_q == Write && mine_q[u];
  end

  ram_1r1w #(
      .Width($bits(slot_t)),
      .Words(Words)
  ) u_ram (
      .clk_i,
      .we_i(state_q == Clear || state_q == Write),
      .waddr_i(addr_q),
      .wdata_i((state_q == Clear) ? '0 : ((slot_q & ~edit_q.clear) | edit_q.set)),
      .re_i(state_q == Read),
      .raddr_i(addr_q),
      .rdata_o(word)
  );

  always_ff @(posedge clk_i) begin
    if (clear_i) clear_q <= 1'b1;
    unique case (state_q)
      Clear: begin
        addr_q <= addr_q + AddrW'(1);
        if (32'(addr_q) == Words - 1) state_q <= Idle;
      end
      Idle: begin
        edit_q <= edit;
        addr_q <= AddrW'(edit.slot) + (edit.prediction ? AddrW'(EncSlots) : '0);
        for (int u = 0; u < int'(Users); u++) mine_q[u] <= ready_o[u];
        if (any) state_q <= Read;
        if (clear_q) begin
          clear_q <= 1'b0;
          addr_q  <= '0;
          state_q <= Clear;
        end
      end
      Read: state_q <= Wait;
      Wait: state_q <= Told;
      Told: begin
        slot_q  <= word;
        state_q <= Write;
      end
      default: state_q <= Idle;
    endcase
    if (rst_i) begin
      state_q <= Clear;
      addr_q  <= '0;
      clear_q <= 1'b0;
    end
  end

  logic unused;
  assign unused = &{1'b0, edit_q, edit};  // the number has become an address
endmodule
