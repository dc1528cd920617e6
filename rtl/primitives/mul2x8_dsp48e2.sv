// SPDX-License-Identifier: Apache-2.0
// Two signed 8-bit products with one operand in common, exact, in one DSP block of UltraScale+; the weights stay in its registers until others are loaded.
//
// The pre-adder makes w1 * 2^18 + w0, so the product has w1 * x above and w0 * x below. The block adds 2^17: the lower part is then never negative and takes nothing from the
// upper one. Neither is changed by it in the bits that come out.
module mul2x8_dsp48e2 (
    input  logic               clk_i,
    input  logic               load_i,
    input  logic signed [ 7:0] w0_i,    // taken with load_i
    input  logic signed [ 7:0] w1_i,
    input  logic signed [ 7:0] x_i,     // meets the weights that were loaded a clock before it, or earlier
    output logic signed [15:0] p0_o,    // w0 * x, four clocks after x
    output logic signed [15:0] p1_o     // w1 * x
);
  logic [47:0] p;

  DSP48E2 #(
      .ACASCREG(1),
      .ADREG(1),
      .ALUMODEREG(0),
      .AMULTSEL("AD"),
      .AREG(1),
      .BCASCREG(1),
      .BREG(1),
      .CARRYINREG(0),
      .CARRYINSELREG(0),
      .CREG(0),
      .DREG(1),
      .INMODEREG(0),
      .MREG(1),
      .OPMODEREG(0),
      .PREG(1),
      .RND(48'h0000_0002_0000)
  ) u_block (
      .CLK(clk_i),
      .A({{4{w1_i[7]}}, unsigned'(w1_i), 18'd0}),
      .B({{10{x_i[7]}}, unsigned'(x_i)}),
      .D({{19{w0_i[7]}}, unsigned'(w0_i)}),
      .CEA2(load_i),
      .CED(load_i),
      .CEAD(1'b1),
      .CEB2(1'b1),
      .CEM(1'b1),
      .CEP(1'b1),
      .OPMODE(9'b10_000_01_01),  // RND + 0 + product
      .INMODE(5'b00100),  // (D + A) * B
      .ALUMODE(4'd0),
      .CARRYINSEL(3'd0),
      .CARRYIN(1'b0),
      .P(p),

      .ACIN(30'd0),
      .BCIN(18'd0),
      .C(48'd0),
      .PCIN(48'd0),
      .CARRYCASCIN(1'b0),
      .MULTSIGNIN(1'b0),
      .CEA1(1'b0),
      .CEB1(1'b0),
      .CEC(1'b0),
      .CEALUMODE(1'b0),
      .CECARRYIN(1'b0),
      .CECTRL(1'b0),
      .CEINMODE(1'b0),
      .RSTA(1'b0),
      .RSTB(1'b0),
      .RSTC(1'b0),
      .RSTD(1'b0),
      .RSTM(1'b0),
      .RSTP(1'b0),
      .RSTALLCARRYIN(1'b0),
      .RSTALUMODE(1'b0),
      .RSTCTRL(1'b0),
      .RSTINMODE(1'b0)
  );

  // A register near the logic that goes on with them.
  always_ff @(posedge clk_i) begin
    p0_o <= signed'(p[15:0]);
    p1_o <= signed'(p[33:18]);
  end

  logic unused;
  assign unused = &{1'b0, p};
endmodule
