// SPDX-License-Identifier: Apache-2.0
// Behavioural model of the UltraScale+ DSP block, as far as this design uses it: P = RND + (A + D) * B, registers at A, D, the sum of both, B (one), the product and P, none at
// the controls, which stand still; reset by nothing. Synthesis sees the vendor cell instead.
module DSP48E2 #(
    parameter int ACASCREG = 1,
    parameter int ADREG = 1,
    parameter int ALUMODEREG = 1,
    parameter string AMULTSEL = "A",
    parameter int AREG = 1,
    parameter int BCASCREG = 1,
    parameter int BREG = 1,
    parameter int CARRYINREG = 1,
    parameter int CARRYINSELREG = 1,
    parameter int CREG = 1,
    parameter int DREG = 1,
    parameter int INMODEREG = 1,
    parameter int MREG = 1,
    parameter int OPMODEREG = 1,
    parameter int PREG = 1,
    parameter logic [47:0] RND = '0
) (
    input logic CLK,
    input logic [29:0] A,
    input logic [17:0] B,
    input logic [26:0] D,
    input logic CEA2,
    input logic CED,
    // verilator lint_off UNUSEDSIGNAL
    // Pins of what the model leaves out; those that could change the result are checked below.
    input logic [29:0] ACIN,
    input logic [17:0] BCIN,
    input logic [47:0] C, PCIN,
    input logic CARRYCASCIN, MULTSIGNIN, CEA1, CEALUMODE, CEB1, CEC, CECARRYIN, CECTRL, CEINMODE, RSTALLCARRYIN, RSTALUMODE, RSTC, RSTCTRL, RSTINMODE,
    // verilator lint_on UNUSEDSIGNAL
    input logic CEAD, CEB2, CEM, CEP, RSTA, RSTB, RSTD, RSTM, RSTP,
    input logic [3:0] ALUMODE,
    input logic [4:0] INMODE,
    input logic [8:0] OPMODE,
    input logic [2:0] CARRYINSEL,
    input logic CARRYIN,
    output logic [47:0] P
);
  if (ADREG != 1 || AREG != 1 || BREG != 1 || DREG != 1 || MREG != 1 || PREG != 1 || AMULTSEL != "AD") begin : gen_data
    $error("%m: not modelled");
  end
  if (ACASCREG != 1 || BCASCREG != 1 || ALUMODEREG != 0 || CARRYINREG != 0 || CARRYINSELREG != 0 || INMODEREG != 0 || OPMODEREG != 0 || CREG > 1) begin : gen_control
    $error("%m: not modelled");
  end

  logic signed [26:0] a_q, d_q, ad_q;
  logic signed [17:0] b_q;
  logic signed [44:0] m_q;
  always_ff @(posedge CLK) begin
    if (CEA2) a_q <= signed'(A[26:0]);
    if (CED) d_q <= signed'(D);
    ad_q <= a_q + d_q;
    b_q <= signed'(B);
    m_q <= 45'(ad_q) * 45'(b_q);
    P <= RND + unsigned'(48'(m_q));
  end

  // W: RND; Z: 0; Y and X: the product. A from its register, D taken, B from its register.
  logic good;
  assign good = OPMODE == 9'b10_000_01_01 && INMODE == 5'b00100 && {ALUMODE, CARRYINSEL, CARRYIN} == '0 && {CEAD, CEB2, CEM, CEP} == '1 &&
      {RSTA, RSTB, RSTD, RSTM, RSTP} == '0;
  always_ff @(posedge CLK) assert (good) else $error("%m: not modelled");

  logic unused;
  assign unused = &{1'b0, A[29:27]};  // the multiplier's operand has 27 bits
endmodule
