// SPDX-License-Identifier: Apache-2.0
// CRC-32 of IEEE 802.3 over 32-bit words, first byte in the low bits, as zlib computes it.

package crc_pkg;

  localparam logic [31:0] CrcInit = 32'hFFFFFFFF;
  localparam logic [31:0] Polynomial = 32'hEDB88320;

  // The register after one more word; start at CrcInit, the CRC is the register inverted.
  function automatic logic [31:0] crc_next(input logic [31:0] state, input logic [31:0] word);
    logic [31:0] value;
    value = state ^ word;
    for (int i = 0; i < 32; i++) value = value[0] ? (value >> 1) ^ Polynomial : value >> 1;
    return value;
  endfunction

endpackage
