// SPDX-License-Identifier: Apache-2.0
// The LSTM cell (docs/numerics.md, sections 4 and 5): one unit a clock, from its four arguments to the new c and h.
//
// Timing, with the arguments in clock n: c is taken in n + 6, c' comes out in n + 13, h in n + 22.
module lstm_cell #(
    parameter string Multiplier = "GENERIC"  // "ECP5" or "GENERIC"
) (
    input logic clk_i,
    input logic rst_i,

    input logic        load_valid_i,
    input logic [15:0] load_addr_i,
    input logic [31:0] load_data_i,

    // Clock n: pre-activations of the gates i, f, g, o as magnitude and sign.
    input logic [17:0] argument_i[4],
    input logic        negative_i[4],
    input logic [ 3:0] qc_i,           // 8..15
    input logic [ 3:0] qh_i,           // 5..14

    input  logic signed [15:0] c_i,  // clock n + 6
    output logic signed [15:0] c_o,  // clock n + 13
    output logic signed [ 7:0] h_o   // within clock n + 22, to be registered by whom it is for
);
  localparam int unsigned GatesAt = 6;
  localparam int unsigned ProductsAt = 9;
  localparam int unsigned NewCellAt = 12;
  localparam int unsigned TanhAt = 18;
  localparam int unsigned OutputAt = 21;

  logic sigmoid_we, tanh_we;
  logic [ 8:0] table_waddr;
  logic [35:0] table_wdata;

  table_loader u_loader (
      .clk_i,
      .load_valid_i,
      .load_addr_i,
      .load_data_i,
      .sigmoid_we_o(sigmoid_we),
      .tanh_we_o(tanh_we),
      .waddr_o(table_waddr),
      .wdata_o(table_wdata)
  );

  // Gates. A bound of 2^15 (sigmoid far below 0) needs 17 bits.
  logic signed [16:0] gate[4];

  for (genvar n = 0; n < 4; n++) begin : gen_gate
    function_table #(
        .Multiplier(Multiplier),
        .Sigmoid(n != 2)
    ) u_function (
        .clk_i,
        .we_i((n == 2) ? tanh_we : sigmoid_we),
        .waddr_i(table_waddr),
        .wdata_i(table_wdata),
        .argument_i(argument_i[n]),
        .negative_i(negative_i[n]),
        .value_o(gate[n])
    );
  end

  // 15 - qc and 14 - qh, where they are needed.
  logic [2:0] c_less, c_less_at_products, c_less_at_new_cell;
  logic [3:0] h_less, h_less_at_output;
  assign c_less = ~qc_i[2:0];
  assign h_less = 4'd14 - qh_i;

  delay_line #(
      .Width (3),
      .Clocks(ProductsAt)
  ) u_c_less_products (
      .clk_i,
      .rst_i,
      .data_i(c_less),
      .data_o(c_less_at_products)
  );

  delay_line #(
      .Width (3),
      .Clocks(NewCellAt - ProductsAt)
  ) u_c_less_new_cell (
      .clk_i,
      .rst_i,
      .data_i(c_less_at_products),
      .data_o(c_less_at_new_cell)
  );

  delay_line #(
      .Width (4),
      .Clocks(OutputAt)
  ) u_h_less (
      .clk_i,
      .rst_i,
      .data_i(h_less),
      .data_o(h_less_at_output)
  );

  // c' = sat16(rsr(f * c * 2^d + i * g, 15 + d)) with d = 15 - qc. f * c being whole, this is
  // sat16(rsr(f * c + floor(i * g / 2^d), 15)): only one product is shifted.
  logic signed [35:0] fc, ig;

  mul18x18 #(
      .Multiplier(Multiplier)
  ) u_forget (
      .clk_i,
      .a_i(18'(gate[1])),
      .b_i(18'(c_i)),
      .p_o(fc)
  );

  mul18x18 #(
      .Multiplier(Multiplier)
  ) u_input (
      .clk_i,
      .a_i(18'(gate[0])),
      .b_i(18'(gate[2])),
      .p_o(ig)
  );

  logic signed [31:0] fc_q, ig_q;
  logic signed [32:0] total_q;
  logic total_sign, total_over;
  logic [31:0] total_folded;
  logic [16:0] total_rounded;
  logic [15:0] magnitude_q;  // of c', at most 2^15
  logic sign_q;

  assign total_sign = total_q[32];
  assign total_folded = total_q[31:0] ^ {32{total_sign}};
  assign total_rounded = total_folded[31:15] + 17'(total_folded[14]);  // as in pre_activation
  assign total_over = total_rounded[16:15] != '0;

  always_ff @(posedge clk_i) begin
    ig_q <= 32'(ig >>> c_less_at_products);
    fc_q <= fc[31:0];
    total_q <= 33'(fc_q) + 33'(ig_q);
    if (total_over) magnitude_q <= total_sign ? 16'h8000 : 16'h7fff;
    else magnitude_q <= {1'b0, total_rounded[14:0]};
    sign_q <= total_sign;
    c_o <= signed'((magnitude_q ^ {16{sign_q}}) + 16'(sign_q));
  end

  // u = c' * 2^d, limited to 2^18 - 1.
  logic [22:0] scaled;
  logic [17:0] cell_argument;

  assign scaled = 23'(magnitude_q) << c_less_at_new_cell;
  assign cell_argument = scaled[17:0] | {18{scaled[22:18] != '0}};

  logic signed [16:0] cell_tanh, output_gate;

  function_table #(
      .Multiplier(Multiplier),
      .Sigmoid(1'b0)
  ) u_cell_function (
      .clk_i,
      .we_i(tanh_we),
      .waddr_i(table_waddr),
      .wdata_i(table_wdata),
      .argument_i(cell_argument),
      .negative_i(sign_q),
      .value_o(cell_tanh)
  );

  delay_line #(
      .Width (17),
      .Clocks(TanhAt - GatesAt)
  ) u_output_gate (
      .clk_i,
      .rst_i,
      .data_i(gate[3]),
      .data_o(output_gate)
  );

  // h' = sat8(rsr(o * tanh(c'), 30 - qh)), the shift being 16..25.
  logic signed [35:0] ot;

  mul18x18 #(
      .Multiplier(Multiplier)
  ) u_output (
      .clk_i,
      .a_i(18'(output_gate)),
      .b_i(18'(cell_tanh)),
      .p_o(ot)
  );

  logic signed [16:0] shifted_q;  // the lowest bit is the rounding bit
  logic high, low;

  always_ff @(posedge clk_i) shifted_q <= signed'(ot[31:15]) >>> h_less_at_output;

  assign high = !shifted_q[16] && (shifted_q[15:8] != '0 || shifted_q[7:1] == '1);  // 127 or more
  assign low  = shifted_q[16] && (shifted_q[15:8] != '1 || shifted_q[7:1] == '0);  // -128 or less

  always_comb begin
    if (high) h_o = 8'sd127;
    else if (low) h_o = -8'sd127;
    else h_o = signed'(shifted_q[8:1] + 8'(shifted_q[0]));
  end

  logic unused;
  assign unused = &{1'b0, qc_i[3], fc[35:32], total_folded[13:0], ot[35:32], ot[14:0]};
endmodule
