// SPDX-License-Identifier: Apache-2.0
// Behavioural model of the ECP5 multiplier block, as far as this design and its netlists use it: each register stage is bypassed ("NONE") or runs on
// CLK0, always enabled and never reset; no cascade between blocks. Synthesis sees the vendor cell instead.
module MULT18X18D #(
    parameter string REG_INPUTA_CLK = "NONE",
    parameter string REG_INPUTB_CLK = "NONE",
    parameter string REG_INPUTC_CLK = "NONE",
    parameter string REG_PIPELINE_CLK = "NONE",
    parameter string REG_OUTPUT_CLK = "NONE",
    parameter string GSR = "ENABLED",
    parameter string RESETMODE = "SYNC"
) (
    input logic CLK0,
    input logic SIGNEDA, SIGNEDB,
    input logic
    A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0,
    B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0,
    // verilator lint_off UNUSEDSIGNAL
    // Pins of what the model leaves out; they are checked below to be off.
    input logic CLK1, CLK2, CLK3, CE0, CE1, CE2, CE3, RST0, RST1, RST2, RST3, SOURCEA, SOURCEB,
    input logic
    C17, C16, C15, C14, C13, C12, C11, C10, C9, C8, C7, C6, C5, C4, C3, C2, C1, C0,
    // verilator lint_on UNUSEDSIGNAL
    output logic
    P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18,
    P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0
);
  if (GSR == "") begin : gen_gsr
    $error("%m: GSR must be given");
  end
  if (RESETMODE != "SYNC" || REG_INPUTC_CLK != "NONE") begin : gen_mode
    $error("%m: not modelled");
  end

  logic signed [18:0] a, b, a_s, b_s;
  logic signed [35:0] product, product_s, product_p;
  assign a = signed'({SIGNEDA & A17, A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0});
  assign b = signed'({SIGNEDB & B17, B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0});

  if (REG_INPUTA_CLK == "CLK0") begin : gen_a
    always_ff @(posedge CLK0) a_s <= a;
  end else begin : gen_no_a
    assign a_s = a;
  end
  if (REG_INPUTB_CLK == "CLK0") begin : gen_b
    always_ff @(posedge CLK0) b_s <= b;
  end else begin : gen_no_b
    assign b_s = b;
  end

  assign product = 36'(38'(a_s) * 38'(b_s));
  if (REG_PIPELINE_CLK == "CLK0") begin : gen_pipeline
    always_ff @(posedge CLK0) product_s <= product;
  end else begin : gen_no_pipeline
    assign product_s = product;
  end
  if (REG_OUTPUT_CLK == "CLK0") begin : gen_output
    always_ff @(posedge CLK0) product_p <= product_s;
  end else begin : gen_no_output
    assign product_p = product_s;
  end
  assign {
      P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18,
      P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0
  } = product_p;

  always_comb begin
    assert ({RST0, RST1, RST2, RST3, SOURCEA, SOURCEB} == '0 && {CE0, CE1, CE2, CE3} == '1)
    else $error("%m: a pin is used that the model leaves out");
  end
endmodule
