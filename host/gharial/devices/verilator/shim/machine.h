// SPDX-License-Identifier: Apache-2.0
// The Verilated top with its clock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "Vgharial.h"
#include "axil.h"
#ifdef GHARIAL_IN_MEMORY
#include "board.h"
#endif
#include "profile.h"
#include "recorder.h"
#include "verilated.h"

namespace gharial {

class Machine {
 public:
  // Registers and memories start with values drawn from `seed`; then the machine is reset.
  explicit Machine(uint32_t seed);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // One clock is settle, for what the inputs change at once, then edge.
  void settle() {
    top_.clk_i = 0;
#ifdef GHARIAL_IN_MEMORY
    board_.drive();
#endif
    top_.eval();
  }
  void edge() {
#ifdef GHARIAL_IN_MEMORY
    board_.sample();
#endif
    top_.clk_i = 1;
    top_.eval();
    ++cycles_;
  }

  uint64_t cycles() const { return cycles_; }
  uint32_t completions() const { return top_.completions_o; }
  bool halted() const { return top_.halted_o; }
  bool interrupt() const { return top_.irq_o; }

  // Whether the completion index has reached `completions`, or nothing more will come.
  bool reached(uint32_t completions) const {
    return halted() || static_cast<int32_t>(top_.completions_o - completions) >= 0;
  }

  AxiLite<uint8_t>& registers() { return registers_; }

  void enter();  // makes its context the one that Verilator's library looks in on this thread

  // Words of the device memory: through its port on chip, or at once, as by a link of its own that takes none of the machine's clocks.
  Transfer read_memory(uint64_t address, uint32_t* words, size_t count, uint64_t& failed);
  Transfer write_memory(uint64_t address, const uint32_t* words, size_t count, unsigned first_strobes,
                        unsigned last_strobes, uint64_t& failed);
  uint64_t bytes_moved();           // by the device's own accesses to a memory off chip, since power-on
  uint64_t linear_read(uint64_t bytes);   // clocks
  void break_memory(uint64_t address);  // accesses there fail; ~0 for none

  Recorder& recorder() { return recorder_; }
  Profile& profile() { return profile_; }

 private:
  VerilatedContext context_;
  Vgharial top_;
  AxiLite<uint8_t> registers_;
#ifdef GHARIAL_IN_MEMORY
  Board board_;
#else
  AxiLite<uint32_t> memory_;
#endif
  Recorder recorder_;
  Profile profile_;
  uint64_t cycles_ = 0;
};

// Makes a machine the one that this thread simulates, for what the simulation prints and records.
class Simulating {
 public:
  explicit Simulating(Machine* machine);
  ~Simulating();
  Simulating(const Simulating&) = delete;
  Simulating& operator=(const Simulating&) = delete;

  static Recorder* recorder();    // of the machine that this thread simulates
  static Profile* profile();      // likewise
  static std::string& printed();  // last line that the simulation of this thread printed
};

}  // namespace gharial
