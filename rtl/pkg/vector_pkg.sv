// SPDX-License-Identifier: Apache-2.0
// Types within the vector unit.

package vector_pkg;

  // The ways of a job's results through the vector unit, which differ in length.
  typedef enum logic [1:0] {
    WayShort = 2'd0,  // sums and logits
    WayI16   = 2'd1,
    WayLong  = 2'd2   // CELL and I8
  } way_e;

  localparam int unsigned Ways = 3;

endpackage
