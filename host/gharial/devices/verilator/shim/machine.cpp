// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

#include <cstdarg>
#include <cstdio>
#include <stdexcept>

namespace gharial {

namespace {

constexpr int kResetClocks = 16;

thread_local Recorder* simulated = nullptr;
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
      memory_ GHARIAL_AXIL(s_axil_mem) {
  Simulating here(&recorder_);
  registers_.rest();
  memory_.rest();
  top_.rst_i = 1;
  for (int i = 0; i < kResetClocks; i++) {
    settle();
    edge();
  }
  top_.rst_i = 0;
}

Machine::~Machine() = default;

Simulating::Simulating(Recorder* recorder) { simulated = recorder; }
Simulating::~Simulating() { simulated = nullptr; }
Recorder* Simulating::recorder() { return simulated; }
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
