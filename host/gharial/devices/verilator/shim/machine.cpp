// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace gharial {

namespace {

constexpr int kResetClocks = 16;

thread_local Machine* simulated = nullptr;
thread_local std::string last_printed;

}  // namespace

#define GHARIAL_AXIL(port)                                                                                            \
  {                                                                                                                   \
    top_.port##_awaddr, top_.port##_awprot, top_.port##_awvalid, top_.port##_awready, top_.port##_wdata,              \
        top_.port##_wstrb, top_.port##_wvalid, top_.port##_wready, top_.port##_bresp, top_.port##_bvalid,             \
        top_.port##_bready, top_.port##_araddr, top_.port##_arprot, top_.port##_arvalid, top_.port##_arready,         \
        top_.port##_rdata, top_.port##_rresp, top_.port##_rvalid, top_.port##_rready                                  \
  }

Machine::Machine(uint32_t seed)
    : top_{(context_.randReset(2), context_.randSeed(static_cast<int>(seed)), &context_)},
      registers_ GHARIAL_AXIL(s_axil_csr),
#ifdef GHARIAL_IN_MEMORY
      board_(top_, GHARIAL_WINDOW_BYTES, GHARIAL_MEMORY_RATE, GHARIAL_MEMORY_LATENCY) {
  Simulating here(this);
#else
      memory_ GHARIAL_AXIL(s_axil_mem) {
  Simulating here(this);
  memory_.rest();
#endif
  registers_.rest();
  top_.rst_i = 1;
  for (int i = 0; i < kResetClocks; i++) {
    settle();
    edge();
  }
  top_.rst_i = 0;
}

// A Verilated model's destructors look in the thread's context, which may be another machine's that is closed by now.
Machine::~Machine() { enter(); }

void Machine::enter() { Verilated::threadContextp(&context_); }

#ifdef GHARIAL_IN_MEMORY

// The driver's accesses lie within the memory, so nothing is refused.
Transfer Machine::read_memory(uint64_t address, uint32_t* words, size_t count, uint64_t& failed) {
  failed = address;
  if (!board_.memory().holds(address, 4 * count)) return Transfer::Refused;
  std::memcpy(words, board_.memory().at(address), 4 * count);
  return Transfer::Done;
}

Transfer Machine::write_memory(uint64_t address, const uint32_t* words, size_t count, unsigned first_strobes,
                               unsigned last_strobes, uint64_t& failed) {
  failed = address;
  if (!board_.memory().holds(address, 4 * count)) return Transfer::Refused;
  const auto* from = reinterpret_cast<const uint8_t*>(words);
  uint8_t* to = board_.memory().at(address);
  const auto some = [&](size_t word, unsigned strobes) {
    for (size_t i = 0; i < 4; i++)
      if (strobes >> i & 1) to[4 * word + i] = from[4 * word + i];
  };
  if (count == 1) {
    some(0, first_strobes & last_strobes);
  } else if (count > 1) {
    some(0, first_strobes);
    std::memcpy(to + 4, from + 4, 4 * (count - 2));
    some(count - 1, last_strobes);
  }
  return Transfer::Done;
}

uint64_t Machine::bytes_moved() { return board_.memory().moved(); }
uint64_t Machine::linear_read(uint64_t bytes) { return Board::linear_read(bytes); }
void Machine::break_memory(uint64_t address) { board_.memory().broken = address; }

#else

// The port on chip has 32 address bits; the window is smaller than that.
Transfer Machine::read_memory(uint64_t address, uint32_t* words, size_t count, uint64_t& failed) {
  uint32_t at = 0;
  const Transfer transfer = read_words(memory_, *this, static_cast<uint32_t>(address), words, count, at);
  failed = at;
  return transfer;
}

Transfer Machine::write_memory(uint64_t address, const uint32_t* words, size_t count, unsigned first_strobes,
                               unsigned last_strobes, uint64_t& failed) {
  uint32_t at = 0;
  const Transfer transfer =
      write_words(memory_, *this, static_cast<uint32_t>(address), words, count, first_strobes, last_strobes, at);
  failed = at;
  return transfer;
}

uint64_t Machine::bytes_moved() { return 0; }
uint64_t Machine::linear_read(uint64_t) { return 0; }
void Machine::break_memory(uint64_t) {}

#endif

Simulating::Simulating(Machine* machine) {
  simulated = machine;
  machine->enter();
}
Simulating::~Simulating() { simulated = nullptr; }
Recorder* Simulating::recorder() { return simulated ? &simulated->recorder() : nullptr; }
Profile* Simulating::profile() { return simulated ? &simulated->profile() : nullptr; }
std::string& Simulating::printed() { return last_printed; }

}  // namespace gharial

extern "C" int gharial_print(const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::fputs(text, stderr);
  gharial::Simulating::printed() = text;
  return length;
}

// What Verilator calls where the RTL stops the simulation; by itself it would end the process.

[[noreturn]] static void stopped(const char* why, const char* file, int line) {
  std::string what = gharial::Simulating::printed();
  while (!what.empty() && what.back() == '\n') what.pop_back();
  if (what.empty()) what = std::string(why) + " at " + (file ? file : "?") + ":" + std::to_string(line);
  throw std::runtime_error(what);
}

void vl_finish(const char* file, int line, const char*) { stopped("$finish", file, line); }

void vl_stop(const char* file, int line, const char*) { stopped("$stop", file, line); }

void vl_fatal(const char* file, int line, const char*, const char* message) {
  if (message && *message) gharial::Simulating::printed() = message;
  stopped("$fatal", file, line);
}
