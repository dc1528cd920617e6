// SPDX-License-Identifier: Apache-2.0
// The checks of a descriptor that need nothing else, in the order of docs/isa.md, section 6. What comes in must have stood for three clocks.
module command_check
  import gharial_pkg::*;
  import host_pkg::*;
#(
    parameter int unsigned MaxEntries = gharial_config_pkg::MaxEntries
) (
    input  logic               clk_i,
    input  descriptor_t        descriptor_i,
    input  logic        [31:0] crc_i,          // computed over words 0 to 14
    input  logic               program_i,      // there is a current program
    input  logic        [15:0] classes_i,
    input  logic        [63:0] mem_size_i,
    output failure_t           failure_o,
    output logic        [31:0] result_bytes_o  // of one entry
);
  logic [7:0] operation, flags, k;
  logic [15:0] entries;
  logic [ 1:0] mode;
  logic [ 5:0] named;
  logic [63:0] entry_address;
  assign operation = descriptor_i[0][7:0];
  assign flags = descriptor_i[0][15:8];
  assign entries = descriptor_i[0][31:16];
  assign k = descriptor_i[6][7:0];
  assign mode = descriptor_i[6][9:8];
  assign named = descriptor_i[6][15:10];
  assign entry_address = {descriptor_i[3], descriptor_i[2]};

  logic known;
  assign known = operation == CmdNop || operation == CmdLoad || operation == CmdStart || on_streams(
      operation
  ) || on_slots(
      operation
  );

  // Fields of DECODE and GREEDY, by word.
  logic bad_6, bad_6_q, bad_7_q, bad_8_q, decodes;
  assign decodes = operation == CmdDecode;
  always_comb begin
    bad_6 = 1'b0;
    if (operation == CmdGreedy) bad_6 = k == '0;
    if (decodes) begin
      bad_6 = named > 6'd4 || !(mode == ModeAll || (mode == ModeTopK && k != '0 && 32'(k) <= MostK && 16'(k) <= classes_i) ||
                                (mode == ModeFuzzy && k != '0 && 32'(k) <= MostK && 13'(k) <= classes_i[15:3] && classes_i[7:0] == '0));
    end
  end
  always_ff @(posedge clk_i) begin
    bad_6_q <= bad_6;
    bad_7_q <= decodes && ((named > 6'd0 && descriptor_i[7][15:0] >= classes_i) || (named > 6'd1 && descriptor_i[7][31:16] >= classes_i));
    bad_8_q <= decodes && ((named > 6'd2 && descriptor_i[8][15:0] >= classes_i) || (named > 6'd3 && descriptor_i[8][31:16] >= classes_i));
  end

  always_ff @(posedge clk_i) begin
    if (operation == CmdGreedy) result_bytes_o <= 32'd8 + {21'd0, k, 3'b000};
    else if (mode == ModeAll) result_bytes_o <= 32'd16 + 32'({(17'(classes_i) + 17'd1) >> 1, 2'b00});
    else result_bytes_o <= 32'd16 + {22'd0, k, 2'b00};
  end

  failure_t failure;
  logic [64:0] entries_end_q;
  logic crc_wrong_q, known_q, bad_flags_q, bare_q, too_many_q, bad_9_q, address_wrong_q;
  always_ff @(posedge clk_i) begin
    crc_wrong_q <= crc_i != descriptor_i[15];
    known_q <= known;
    bad_flags_q <= flags[7:5] != '0 || (flags[FlagInPlace] && operation != CmdLoad) || (flags[FlagUnchecked] && !flags[FlagInPlace]);
    bare_q <= operation == CmdNop || operation == CmdLoad || operation == CmdStart;
    too_many_q <= 32'(entries) > MaxEntries;
    bad_9_q <= (decodes || operation == CmdGreedy) && descriptor_i[9][1:0] != '0;
    entries_end_q <= 65'(entry_address) + {45'd0, entries, 4'd0};
    address_wrong_q <= entry_address[1:0] != '0 || entries_end_q > 65'(mem_size_i);
    failure_o <= failure;
  end

  always_comb begin
    failure = '{fault: FaultBadCommand, unit: UnitSequencer, detail: '0};
    if (crc_wrong_q) failure = '{fault: FaultChecksum, unit: UnitHost, detail: crc_i};
    else if (!known_q) failure.unit = UnitHost;
    else if (bad_flags_q) failure.detail = '0;
    else if (bare_q) failure = NoFailure;
    else if (!program_i) failure.fault = FaultNoProgram;
    else if (too_many_q) failure.detail = '0;
    else if (bad_6_q) failure.detail = 32'd6;
    else if (bad_7_q) failure.detail = 32'd7;
    else if (bad_8_q) failure.detail = 32'd8;
    else if (bad_9_q) failure.detail = 32'd9;
    else if (address_wrong_q) begin
      failure = '{fault: FaultAddress, unit: UnitHost, detail: entry_address[31:0]};
    end else failure = NoFailure;
  end

  logic unused;
  assign unused = &{1'b0, descriptor_i};  // fields that are not checked here
endmodule
