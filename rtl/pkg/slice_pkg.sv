// SPDX-License-Identifier: Apache-2.0
// Types and sizes within the finish unit (docs/blocks/finish_unit.md). A slice: the rows of a row group that it takes in one clock.

package slice_pkg;
  import gharial_pkg::*;
  import seat_pkg::*;

  localparam int unsigned Lanes = gharial_config_pkg::Lanes;
  localparam int unsigned Cols = gharial_config_pkg::Cols;
  localparam int unsigned SliceRows = 4 * Lanes;
  localparam int unsigned Slices = gharial_config_pkg::Rows / SliceRows;  // of a row group
  localparam int unsigned Halves = gharial_config_pkg::Rows / 4;  // halfwords of a cell unit, bytes of h of a row group
  localparam int unsigned SumWords = Seats * gharial_config_pkg::SumGroups * Slices;
  localparam int unsigned ScaleWords = gharial_config_pkg::ScaleBytes / (4 * SliceRows);
  localparam int unsigned BiasWords = gharial_config_pkg::BiasBytes / (4 * SliceRows);

  localparam int unsigned SliceW = $clog2(Slices);
  localparam int unsigned HalfW = $clog2(Halves);
  localparam int unsigned ByteW = $clog2(Cols);
  localparam int unsigned LanesW = $clog2(Lanes);
  localparam int unsigned SumAddrW = $clog2(SumWords);
  localparam int unsigned ScaleAddrW = $clog2(ScaleWords);
  localparam int unsigned BiasAddrW = $clog2(BiasWords);

  // Words that the outputs of a slice are written in, one a clock.
  localparam int unsigned I16Writes = (SliceRows > Halves) ? SliceRows / Halves : 1;
  localparam int unsigned I8Writes = (SliceRows > Cols) ? SliceRows / Cols : 1;

  // Where a slice's outputs go.
  typedef struct packed {
    logic is_cell;
    logic is_i8;
    logic [SeatActW-1:0] target;
    logic [ByteW-1:0] first_byte;  // within it
    logic second_valid;
    logic [SeatActW-1:0] second;
  } slice_act_t;

  typedef struct packed {
    logic is_cell;
    logic is_i16;
    logic [SliceW-1:0] slice;
    logic [SeatCellW-1:0] addr;
  } slice_cell_t;

  typedef struct packed {
    logic is_logit;
    logic last;  // of the instruction
    logic [SeatW-1:0] seat;
    logic [15:0] number;  // slice, counted over groups
  } slice_logit_t;

endpackage
