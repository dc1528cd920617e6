// SPDX-License-Identifier: Apache-2.0
// A netlist for ECP5 with one clock, evaluated where something changes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cells.h"

namespace gharial::ecp5 {

using Net = uint32_t;

class Netlist {
 public:
  // Reads what table.py wrote. Flip-flops start as the device's do, memories with contents drawn from `seed`. Throws std::runtime_error.
  Netlist(const std::string& path, uint32_t seed);

  // Nets of a port, the lowest bit first.
  const std::vector<Net>& port(const std::string& name) const { return ports_.at(name); }
  bool get(Net net) const { return values_[net]; }
  void set(Net net, bool value);
  void settle();  // all that is not behind a register
  void edge();    // a rising edge of the clock; to be settled before and after

 private:
  enum Kind : uint8_t { kLut, kMux, kCarry, kRamRead };
  struct Gate {
    Kind kind;
    bool waits = false;
    uint32_t level = 0;
    uint32_t init = 0, flags = 0;  // flags: halves of a carry that are injected; of a distributed RAM, its number
    std::array<Net, 9> in{};
    std::array<Net, 4> out{};
    unsigned ins = 0, outs = 0;
  };
  struct FlipFlop {
    Net lsr, ce, di, q;
    uint32_t enable;  // 0: by CE, 1: by its complement, 2: always
    uint32_t set;
    bool waits = true;
  };
  struct DistributedRam {
    Net wre;
    std::array<Net, 4> address, data;
    size_t gate;
    std::array<uint8_t, 16> words;
    bool waits = true;
  };
  struct RamPins {
    BlockRam ram;
    Net cea, ceb, wea;
    std::array<Net, 14> ada, adb;
    std::array<Net, 18> dia, dib, doa, dob;
    bool a_read;
  };
  struct MultiplierPins {
    Multiplier block;
    Net a_signed, b_signed;
    std::array<Net, 18> a, b;
    std::array<Net, 36> p;
  };

  void order();
  void evaluate(Gate& gate);
  void queue(size_t gate);
  void drive(const Net* nets, unsigned count, uint64_t value);

  std::vector<uint8_t> values_;
  std::vector<Gate> gates_;
  std::vector<FlipFlop> flip_flops_;
  std::vector<DistributedRam> distributed_;
  std::vector<RamPins> rams_;
  std::vector<MultiplierPins> multipliers_;
  std::map<std::string, std::vector<Net>> ports_;
  // Readers of each net: gates, then flip-flops, then distributed RAMs, by one number.
  std::vector<uint32_t> first_reader_, readers_;
  std::vector<std::vector<uint32_t>> waiting_;  // gates to be evaluated, by level
  std::vector<uint32_t> due_;                   // flip-flops and distributed RAMs whose inputs have changed since the last edge
  std::vector<std::pair<Net, bool>> changes_;
};

}  // namespace gharial::ecp5
