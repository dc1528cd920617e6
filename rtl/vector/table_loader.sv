// SPDX-License-Identifier: Apache-2.0
// Makes 36-bit words of sigmoid and tanh from the table space's pairs of words (base, slope).
module table_loader (
    input logic clk_i,

    input logic        load_valid_i,
    input logic [15:0] load_addr_i,   // word of the table space
    input logic [31:0] load_data_i,

    output logic        sigmoid_we_o,
    output logic        tanh_we_o,
    output logic [ 8:0] waddr_o,
    output logic [35:0] wdata_o        // slope, base
);
  logic [17:0] base_q;

  always_ff @(posedge clk_i) begin
    if (load_valid_i && !load_addr_i[0]) base_q <= load_data_i[17:0];
    sigmoid_we_o <= load_valid_i && load_addr_i[0] && load_addr_i[15:10] == 6'd0;
    tanh_we_o <= load_valid_i && load_addr_i[0] && load_addr_i[15:10] == 6'd1;
    waddr_o <= load_addr_i[9:1];
    wdata_o <= {load_data_i[17:0], base_q};
  end

  logic unused;
  assign unused = &{1'b0, load_data_i[31:18]};  // copies of the sign
endmodule
