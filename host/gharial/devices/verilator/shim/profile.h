// SPDX-License-Identifier: Apache-2.0
// Where the clocks go: each clock that the device's counters count, by cause and by the layer that the array is at or waits for, and over time.
//
// The modules of sim/profile report two things of every clock: what the counters take it for, and which segment (or job) comes to the array, leaves it,
// or would be next. Nothing overtakes in the array, so the clock belongs to the oldest segment that is there; if none is, to what would be next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace gharial {

class Profile {
 public:
  static constexpr size_t kCauses = 6;   // active, weights, dependency, back-pressure, loading, idle: the order of the counters
  static constexpr size_t kUnits = 8;    // that may be at work
  static constexpr size_t kAmounts = 2;  // bytes: of weights, of state
  static constexpr size_t kBuckets = 16384;

  // Waits for the counters to be latched, counts until they are again. Tiles from tiles[i] on (ascending) belong to row rows[i]; others[n] is the row of
  // what waiting says by -1 - n.
  void begin(std::vector<uint32_t> tiles, std::vector<uint16_t> rows, std::vector<uint16_t> others, size_t row_count);
  bool on() const { return state_ == Armed || state_ == Counting; }
  bool complete() const { return state_ == Done; }
  const std::string& error() const { return error_; }

  size_t width() const { return width_; }  // clocks of a bucket
  // rows x kCauses clocks.
  const std::vector<uint64_t>& counts() const { return counts_; }
  // For each bucket: kCauses clocks, then those of each row, of each unit, then kAmounts bytes.
  const std::vector<uint32_t>& buckets() const { return buckets_; }

  // From the modules of sim/profile, once a clock each.
  void clock(unsigned now, bool enabled, bool latched, bool reset);
  void units(int taken, bool left, int waiting, unsigned at_work, unsigned weight_bytes, unsigned state_bytes, bool reset);

 private:
  struct Units {
    int taken, waiting;
    bool left, reset;
    unsigned at_work;
    unsigned amounts[kAmounts];
  };
  struct Clock {  // counted in the next, as the counters do
    unsigned cause;
    uint16_t row;
    unsigned at_work;
    unsigned amounts[kAmounts];
  };

  void step();
  void count(const Clock& clock);
  void halve();
  uint16_t row_of(int place) const;
  size_t words() const { return kCauses + rows_ + kUnits + kAmounts; }
  void lost(const char* what);

  enum { Off, Armed, Counting, Done } state_ = Off;
  std::string error_;
  std::vector<uint32_t> tiles_;
  std::vector<uint16_t> tile_rows_, others_;
  size_t rows_ = 0;

  bool have_clock_ = false, have_units_ = false;
  unsigned now_ = 0;
  bool enabled_ = false, latched_ = false, reset_ = false;
  Units units_ = {};
  std::deque<uint16_t> array_;  // rows of what the array has
  bool pending_ = false;
  Clock before_ = {};

  uint64_t clocks_ = 0;
  size_t width_ = 1;
  std::vector<uint64_t> counts_;
  std::vector<uint32_t> buckets_;
};

}  // namespace gharial
