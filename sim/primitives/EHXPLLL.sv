// SPDX-License-Identifier: Apache-2.0
// Behavioural model of the ECP5 PLL for simulations that do not care for rates: the clock goes through, and the PLL locks when its reset ends.
module EHXPLLL #(
    // verilator lint_off UNUSEDPARAM
    parameter CLKFB_DIV = 1,
    parameter CLKI_DIV = 1,
    parameter CLKOP_CPHASE = 0,
    parameter CLKOP_DIV = 1,
    parameter string CLKOP_ENABLE = "DISABLED",
    parameter CLKOP_FPHASE = 0,
    parameter CLKOS_CPHASE = 0,
    parameter CLKOS_DIV = 1,
    parameter string CLKOS_ENABLE = "DISABLED",
    parameter CLKOS_FPHASE = 0,
    parameter string FEEDBK_PATH = "CLKOP"
    // verilator lint_on UNUSEDPARAM
) (
    input  wire CLKI,
    input  wire RST,
    // verilator lint_off UNUSEDSIGNAL
    input  wire STDBY,
    // verilator lint_on UNUSEDSIGNAL
    output wire CLKOP,
    output wire CLKOS,
    output wire LOCK
);
  assign CLKOP = CLKI;
  assign CLKOS = 1'b0;
  assign LOCK  = !RST;
endmodule
