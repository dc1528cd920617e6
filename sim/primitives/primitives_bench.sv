// SPDX-License-Identifier: Apache-2.0
// Queues and delay lines of several lengths, each with its own ports.
module primitives_bench #(
    parameter int unsigned Width = 9,
    parameter int unsigned Fifos = 3,
    parameter int unsigned Lines = 6
) (
    input logic clk_i,
    input logic rst_i,

    input  logic [Fifos-1:0]            push_valid_i,
    output logic [Fifos-1:0]            push_ready_o,
    input  logic [Fifos-1:0][Width-1:0] push_data_i,
    output logic [Fifos-1:0]            pop_valid_o,
    input  logic [Fifos-1:0]            pop_ready_i,
    output logic [Fifos-1:0][Width-1:0] pop_data_o,

    input  logic [Width-1:0]            line_i,
    output logic [Lines-1:0][Width-1:0] line_o
);
  localparam int unsigned Depth[Fifos] = '{2, 8, 16};
  localparam int unsigned Clocks[Lines] = '{1, 2, 3, 4, 5, 21};

  for (genvar n = 0; n < int'(Fifos); n++) begin : gen_fifo
    small_fifo #(
        .Width(Width),
        .Depth(Depth[n])
    ) u_fifo (
        .clk_i,
        .rst_i,
        .push_valid_i(push_valid_i[n]),
        .push_ready_o(push_ready_o[n]),
        .push_data_i (push_data_i[n]),
        .pop_valid_o (pop_valid_o[n]),
        .pop_ready_i (pop_ready_i[n]),
        .pop_data_o  (pop_data_o[n])
    );
  end
  for (genvar n = 0; n < int'(Lines); n++) begin : gen_line
    delay_line #(
        .Width (Width),
        .Clocks(Clocks[n])
    ) u_line (
        .clk_i,
        .rst_i,
        .data_i(line_i),
        .data_o(line_o[n])
    );
  end
endmodule
