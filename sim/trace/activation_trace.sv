// SPDX-License-Identifier: Apache-2.0
// Reports what aux unit and host block write to the activation memory, for traces of a simulation. Bound to activation_memory.
module activation_trace #(
    parameter int unsigned Cols  = 8,
    parameter int unsigned AddrW = 16
) (
    input logic clk_i,

    input logic              aux_we_i,     // done in this clock
    input logic [ AddrW-1:0] aux_addr_i,
    input logic [8*Cols-1:0] aux_data_i,
    input logic [  Cols-1:0] aux_mask_i,
    input logic              host_we_i,
    input logic [ AddrW-1:0] host_addr_i,
    input logic [8*Cols-1:0] host_data_i
);
  import "DPI-C" function void gharial_trace_aux_bytes(
    input int byte_address,
    input longint data,
    input int mask
  );
  import "DPI-C" function void gharial_trace_host_bytes(
    input int byte_address,
    input longint data
  );

  localparam int unsigned Part = (Cols < 8) ? Cols : 8;  // bytes a report

  always_ff @(posedge clk_i) begin
    for (int unsigned n = 0; n < Cols; n += Part) begin
      if (aux_we_i) begin
        gharial_trace_aux_bytes(32'(aux_addr_i) * Cols + n, 64'(aux_data_i[8*n+:8*Part]), 32'(aux_mask_i[n+:Part]));
      end
      if (host_we_i) gharial_trace_host_bytes(32'(host_addr_i) * Cols + n, 64'(host_data_i[8*n+:8*Part]));
    end
  end
endmodule
