// SPDX-License-Identifier: Apache-2.0
// CRC-32 of IEEE 802.3 over 32-bit words, first byte in the low bits, as zlib computes it.

package crc_pkg;

  localparam logic [31:0] CrcInit = 32'hFFFFFFFF;
  localparam logic [31:0] Polynomial = 32'hEDB88320;

  // The register after 32 bits of zero.
  function automatic logic [31:0] crc_zeros(input logic [31:0] state);
    logic [31:0] value;
    value = state;
    for (int i = 0; i < 32; i++) value = value[0] ? (value >> 1) ^ Polynomial : value >> 1;
    return value;
  endfunction

  // That is linear: bit i of the result is the parity of these bits of the state.
  function automatic logic [31:0][31:0] crc_parities();
    logic [31:0][31:0] bits;
    logic [31:0] column;
    for (int j = 0; j < 32; j++) begin
      column = crc_zeros(32'd1 << j);
      for (int i = 0; i < 32; i++) bits[i][j] = column[i];
    end
    return bits;
  endfunction

  localparam logic [31:0][31:0] Parities = crc_parities();

  // The register after one more word; start at CrcInit, the CRC is the register inverted. As parities, synthesis keeps it three levels deep: it does not
  // take the loop's chain apart.
  function automatic logic [31:0] crc_next(input logic [31:0] state, input logic [31:0] word);
    logic [31:0] value;
    for (int i = 0; i < 32; i++) value[i] = ^((state ^ word) & Parities[i]);
    return value;
  endfunction

endpackage
