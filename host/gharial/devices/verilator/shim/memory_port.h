// SPDX-License-Identifier: Apache-2.0
// A memory of a board behind AXI4 ports of the Verilated top: how fast it answers, and the ports' queues.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>

namespace gharial {

// Memory of a board: all ports share its bandwidth.
class BoardMemory {
 public:
  // `bytes` of address space; `rate` bytes a clock for all ports together, 0 for no limit; `latency` clocks from a burst's address
  // to its first beat.
  BoardMemory(uint64_t bytes, double rate, unsigned latency);
  ~BoardMemory();
  BoardMemory(const BoardMemory&) = delete;
  BoardMemory& operator=(const BoardMemory&) = delete;

  bool holds(uint64_t address, uint64_t count) const { return address <= bytes_ && count <= bytes_ - address; }
  uint8_t* at(uint64_t address) { return data_ + address; }

  // A clock begins: so much more may be moved.
  void tick() {
    ++now_;
    if (rate_ > 0) {
      credit_ += rate_;
      if (credit_ > kBurst * rate_) credit_ = kBurst * rate_;
    }
  }

  // Whether a beat of `count` bytes may be moved now; then it is.
  bool grant(unsigned count) {
    if (rate_ > 0) {
      if (credit_ < count) return false;
      credit_ -= count;
    }
    moved_ += count;
    return true;
  }

  uint64_t now() const { return now_; }
  uint64_t moved() const { return moved_; }  // bytes, since power-on
  unsigned latency() const { return latency_; }

  // Accesses that touch this address are answered by an error; ~0 for none.
  uint64_t broken = ~uint64_t{0};
  bool breaks(uint64_t address, unsigned count) const { return broken - address < count; }

 private:
  static constexpr double kBurst = 16;  // clocks whose unused bandwidth is kept

  uint64_t bytes_;
  double rate_;
  unsigned latency_;
  uint8_t* data_;
  double credit_ = 0;
  uint64_t now_ = 0;
  uint64_t moved_ = 0;
};

// One AXI4 read channel: bursts in order, each no earlier than the latency after its address.
class ReadPort {
 public:
  explicit ReadPort(unsigned width) : width_(width) {}

  bool accepts() const { return bursts_.size() < kOutstanding; }

  void address(const BoardMemory& memory, uint64_t address, unsigned beats) {
    bursts_.push_back({address, beats, memory.now() + memory.latency()});
  }

  // The beat that is offered in this clock, once there is one until it is taken.
  bool offer(BoardMemory& memory) {
    if (!offered_ && !bursts_.empty() && bursts_.front().due <= memory.now() && memory.grant(width_)) offered_ = true;
    return offered_;
  }
  uint64_t beat_address() const { return bursts_.front().address; }
  bool last() const { return bursts_.front().beats == 1; }

  void taken() {
    offered_ = false;
    Burst& burst = bursts_.front();
    burst.address = burst.address / width_ * width_ + width_;
    if (--burst.beats == 0) bursts_.pop_front();
  }

  unsigned width() const { return width_; }

 private:
  static constexpr size_t kOutstanding = 64;
  struct Burst {
    uint64_t address;
    unsigned beats;
    uint64_t due;
  };
  unsigned width_;
  std::deque<Burst> bursts_;
  bool offered_ = false;
};

// One AXI4 write channel: addresses, data and answers in order.
class WritePort {
 public:
  explicit WritePort(unsigned width) : width_(width) {}

  bool accepts() const { return bursts_.size() < kOutstanding; }
  void address(uint64_t address, unsigned beats) { bursts_.push_back({address, beats, false}); }

  // Whether a beat is taken in this clock: only what has an address already.
  bool ready(BoardMemory& memory) {
    if (!ready_ && !bursts_.empty() && memory.grant(width_)) ready_ = true;
    return ready_;
  }

  void data(BoardMemory& memory, const uint8_t* bytes, const uint8_t* strobes) {
    ready_ = false;
    Burst& burst = bursts_.front();
    const uint64_t from = burst.address / width_ * width_;
    if (!memory.holds(from, width_) || memory.breaks(from, width_)) {
      burst.failed = true;
    } else {
      for (unsigned i = 0; i < width_; i++)
        if (strobes[i / 8] >> (i % 8) & 1) *memory.at(from + i) = bytes[i];
    }
    burst.address = from + width_;
    if (--burst.beats == 0) {
      answers_.push_back({burst.failed, memory.now() + memory.latency()});
      bursts_.pop_front();
    }
  }

  bool answers(const BoardMemory& memory) const { return !answers_.empty() && answers_.front().due <= memory.now(); }
  bool failed() const { return answers_.front().failed; }
  void answered() { answers_.pop_front(); }

 private:
  static constexpr size_t kOutstanding = 64;
  struct Burst {
    uint64_t address;
    unsigned beats;
    bool failed;
  };
  struct Answer {
    bool failed;
    uint64_t due;
  };
  unsigned width_;
  std::deque<Burst> bursts_;
  std::deque<Answer> answers_;
  bool ready_ = false;
};

}  // namespace gharial
