// SPDX-License-Identifier: Apache-2.0
// In place of Verilator's header, where a netlist takes the place of the Verilated top.
#pragma once

#include <cstdint>

class VerilatedContext {
 public:
  void randReset(int) {}
  void randSeed(int seed) { seed_ = static_cast<uint32_t>(seed); }
  uint32_t seed() const { return seed_; }

 private:
  uint32_t seed_ = 1;
};

struct Verilated {
  static void threadContextp(VerilatedContext*) {}
};
