// SPDX-License-Identifier: Apache-2.0
// Behavioural model of the ECP5 flip-flop that is set asynchronously.
module FD1S3BX (
    input  logic CK,
    input  logic D,
    input  logic PD,
    output logic Q
);
  always_ff @(posedge CK, posedge PD)
    if (PD) Q <= 1'b1;
    else Q <= D;
endmodule
