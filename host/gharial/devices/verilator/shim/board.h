// SPDX-License-Identifier: Apache-2.0
// The board around the Verilated top of a configuration with weights in memory: its AXI4 ports, connected to one memory.
#pragma once

#include <vector>

#include "Vgharial.h"
#include "memory_port.h"

namespace gharial {

class Board {
 public:
  Board(Vgharial& top, uint64_t bytes, double rate, unsigned latency);

  void drive();   // before the clock's edge: what the memory says to the top
  void sample();  // with all signals settled, before the edge: what passes

  // Clocks in which weight ports like these, with nothing else at work, read so many bytes from such a memory one after the other, in bursts
  // of 4 KiB.
  static uint64_t linear_read(uint64_t bytes);

  BoardMemory& memory() { return memory_; }

 private:
  Vgharial& top_;
  BoardMemory memory_;
  std::vector<ReadPort> weights_;
  ReadPort host_read_, state_read_;
  WritePort host_write_, state_write_;
  size_t turn_ = 0;  // the weight port that is served first
};

}  // namespace gharial
