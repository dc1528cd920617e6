// SPDX-License-Identifier: Apache-2.0
#include "profile.h"

#include <algorithm>

namespace gharial {

void Profile::begin(std::vector<uint32_t> tiles, std::vector<uint16_t> rows, std::vector<uint16_t> others,
                    size_t row_count) {
  *this = Profile();
  tiles_ = std::move(tiles);
  tile_rows_ = std::move(rows);
  others_ = std::move(others);
  rows_ = row_count;
  counts_.assign(rows_ * kCauses, 0);
  state_ = Armed;
}

void Profile::clock(unsigned now, bool enabled, bool latched, bool reset) {
  now_ = now;
  enabled_ = enabled;
  latched_ = latched;
  reset_ = reset;
  have_clock_ = true;
  if (have_units_) step();
}

void Profile::units(int taken, bool left, int waiting, unsigned at_work, unsigned weight_bytes, unsigned state_bytes,
                    bool reset) {
  units_ = {taken, waiting, left, reset, at_work, {weight_bytes, state_bytes}};
  have_units_ = true;
  if (have_clock_) step();
}

// Both halves of a clock are there. What the counters latch is what they had counted before it.
void Profile::step() {
  have_clock_ = have_units_ = false;
  if (latched_) {
    state_ = state_ == Armed ? Counting : Done;
    if (state_ == Done) return;
  }
  if (state_ == Counting && enabled_ && pending_) count(before_);

  const unsigned causes = now_ >> 1;  // bit 0 is every clock
  before_.cause = causes ? static_cast<unsigned>(__builtin_ctz(causes)) : kCauses - 1;
  before_.row = array_.empty() ? row_of(units_.waiting) : array_.front();
  before_.at_work = units_.at_work;
  std::copy(units_.amounts, units_.amounts + kAmounts, before_.amounts);
  if (before_.cause == 0 && array_.empty()) lost("a step of the array without a segment");
  if (reset_ && state_ == Counting) lost("the counters were reset");
  pending_ = true;

  if (units_.left) {
    if (array_.empty()) lost("a segment left that had not come");
    else array_.pop_front();
  }
  if (units_.taken >= 0) array_.push_back(row_of(units_.taken));
  if (units_.reset) array_.clear();
}

void Profile::count(const Clock& clock) {
  counts_[clock.row * kCauses + clock.cause]++;
  if (clocks_ == kBuckets * width_) halve();
  const size_t start = static_cast<size_t>(clocks_ / width_) * words();
  if (start == buckets_.size()) buckets_.resize(start + words(), 0);
  uint32_t* bucket = &buckets_[start];
  bucket[clock.cause]++;
  bucket[kCauses + clock.row]++;
  for (size_t unit = 0; unit < kUnits; unit++) bucket[kCauses + rows_ + unit] += clock.at_work >> unit & 1;
  for (size_t i = 0; i < kAmounts; i++) bucket[kCauses + rows_ + kUnits + i] += clock.amounts[i];
  clocks_++;
}

// Buckets of twice the width.
void Profile::halve() {
  const size_t n = words();
  for (size_t bucket = 0; bucket < kBuckets / 2; bucket++)
    for (size_t i = 0; i < n; i++)
      buckets_[bucket * n + i] = buckets_[2 * bucket * n + i] + buckets_[(2 * bucket + 1) * n + i];
  buckets_.resize(kBuckets / 2 * n);
  width_ *= 2;
}

uint16_t Profile::row_of(int place) const {
  if (place < 0) return others_[std::min<size_t>(static_cast<size_t>(-1 - place), others_.size() - 1)];
  const auto after = std::upper_bound(tiles_.begin(), tiles_.end(), static_cast<uint32_t>(place));
  return after == tiles_.begin() ? others_[0] : tile_rows_[static_cast<size_t>(after - tiles_.begin()) - 1];
}

void Profile::lost(const char* what) {
  if (error_.empty()) error_ = what;
}

}  // namespace gharial
