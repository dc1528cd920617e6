// SPDX-License-Identifier: Apache-2.0
// What Python calls. A call returns 0 (or a count), or one of the codes below with an explanation in gharial_error; no exception passes.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>

#include "machine.h"

using gharial::Machine;
using gharial::Simulating;
using gharial::Transfer;

namespace {

constexpr int kRefused = -1;  // a slave answered with an error
constexpr int kSilent = -2;   // a slave did not answer
constexpr int kFailed = -3;   // the simulation stopped: an assertion did not hold

constexpr uint64_t kBetweenLooks = 64;  // clocks between two looks at the time

struct Device {
  std::unique_ptr<Machine> machine;
  std::string error;
  bool failed = false;
};

template <typename Call>
int guarded(Device* device, Call call) {
  if (device->failed) return kFailed;
  try {
    Simulating here(device->machine.get());
    return call(*device->machine);
  } catch (const std::exception& error) {
    device->failed = true;
    device->error = error.what();
    return kFailed;
  }
}

// `failed` by reference: it is set by the very call that gives `transfer`.
template <typename Address>
int code(Device* device, Transfer transfer, const Address& failed) {
  if (transfer == Transfer::Refused) device->error = std::to_string(failed);
  return transfer == Transfer::Done ? 0 : transfer == Transfer::Refused ? kRefused : kSilent;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// A machine after reset, or null with the reason in `error`.
EXPORTED Device* gharial_open(uint32_t seed, char* error, size_t size) {
  try {
    auto device = std::make_unique<Device>();
    device->machine = std::make_unique<Machine>(seed);
    return device.release();
  } catch (const std::exception& caught) {
    std::strncpy(error, caught.what(), size - 1);
    error[size - 1] = '\0';
    return nullptr;
  }
}

EXPORTED void gharial_close(Device* device) { delete device; }

EXPORTED const char* gharial_error(const Device* device) { return device->error.c_str(); }

EXPORTED int gharial_read_register(Device* device, uint32_t offset, uint32_t* value) {
  return guarded(device, [&](Machine& machine) {
    uint32_t failed = 0;
    return code(device, read_words(machine.registers(), machine, offset, value, 1, failed), failed);
  });
}

EXPORTED int gharial_write_register(Device* device, uint32_t offset, uint32_t value) {
  return guarded(device, [&](Machine& machine) {
    uint32_t failed = 0;
    return code(device, write_words(machine.registers(), machine, offset, &value, 1, 0xF, 0xF, failed), failed);
  });
}

EXPORTED int gharial_read_memory(Device* device, uint64_t address, uint32_t* words, size_t count) {
  return guarded(device, [&](Machine& machine) {
    uint64_t failed = 0;
    return code(device, machine.read_memory(address, words, count, failed), failed);
  });
}

EXPORTED int gharial_write_memory(Device* device, uint64_t address, const uint32_t* words, size_t count,
                                  unsigned first_strobes, unsigned last_strobes) {
  return guarded(device, [&](Machine& machine) {
    uint64_t failed = 0;
    return code(device, machine.write_memory(address, words, count, first_strobes, last_strobes, failed), failed);
  });
}

// Lets the clock run until the completion index has reached `completions` or the machine has halted (1), or until so many seconds or clocks have
// gone by (0).
EXPORTED int gharial_wait(Device* device, uint32_t completions, double seconds, uint64_t clocks) {
  return guarded(device, [&](Machine& machine) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (uint64_t n = 0; !machine.reached(completions); n++) {
      if (n == clocks || (n % kBetweenLooks == 0 && std::chrono::steady_clock::now() >= end)) return 0;
      machine.settle();
      machine.edge();
    }
    return 1;
  });
}

EXPORTED int gharial_advance(Device* device, uint64_t clocks) {
  return guarded(device, [&](Machine& machine) {
    for (uint64_t n = 0; n < clocks; n++) {
      machine.settle();
      machine.edge();
    }
    return 0;
  });
}

EXPORTED uint64_t gharial_cycles(const Device* device) { return device->machine->cycles(); }

// Bytes that the device's accesses to a memory off chip have moved since power-on.
EXPORTED uint64_t gharial_bytes_moved(const Device* device) { return device->machine->bytes_moved(); }

// Clocks that a plain linear read of so many bytes through the weight ports takes, by a reader that never waits.
EXPORTED uint64_t gharial_linear_read(const Device* device, uint64_t bytes) { return device->machine->linear_read(bytes); }

// Accesses of the device to this address of a memory off chip fail from now on; ~0: none does.
EXPORTED void gharial_break_memory(Device* device, uint64_t address) { device->machine->break_memory(address); }

EXPORTED int gharial_interrupt(const Device* device) { return device->machine->interrupt(); }

EXPORTED void gharial_begin_trace(Device* device) { device->machine->recorder().begin(); }

// Ends the trace; the bytes of its records.
EXPORTED size_t gharial_end_trace(Device* device) {
  device->machine->recorder().end();
  return device->machine->recorder().records().size();
}

EXPORTED void gharial_copy_trace(const Device* device, uint8_t* buffer) {
  const auto& records = device->machine->recorder().records();
  std::memcpy(buffer, records.data(), records.size());
}

// Why the trace cannot be trusted, or an empty string.
EXPORTED const char* gharial_trace_error(const Device* device) { return device->machine->recorder().error().c_str(); }

// The tables exp and log of the program loaded, pairs of words (base, slope).
EXPORTED void gharial_tables(const Device* device, uint32_t* words) { device->machine->recorder().tables(words); }

// Counts where the clocks go, from the next time that the counters are latched to the time after; see profile.h.
EXPORTED void gharial_begin_profile(Device* device, const uint32_t* tiles, const uint16_t* rows, size_t parts,
                                    const uint16_t* others, size_t other_count, size_t row_count) {
  device->machine->profile().begin({tiles, tiles + parts}, {rows, rows + parts}, {others, others + other_count},
                                   row_count);
}

// Sizes of what was counted: clocks of a bucket, words of all buckets. Returns why it cannot be used, or an empty string.
EXPORTED const char* gharial_profile(const Device* device, uint64_t* sizes) {
  const auto& profile = device->machine->profile();
  sizes[0] = profile.width();
  sizes[1] = profile.buckets().size();
  if (!profile.complete() && profile.error().empty()) return "the counters were not latched twice";
  return profile.error().c_str();
}

EXPORTED void gharial_copy_profile(const Device* device, uint64_t* counts, uint32_t* buckets) {
  const auto& profile = device->machine->profile();
  std::copy(profile.counts().begin(), profile.counts().end(), counts);
  std::copy(profile.buckets().begin(), profile.buckets().end(), buckets);
}
