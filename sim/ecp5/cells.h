// SPDX-License-Identifier: Apache-2.0
// Behaviour of the ECP5 cells that netlists of this design are made of. What a netlist uses beyond that, table.py refuses.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace gharial::ecp5 {

// LUT4: Z is the bit of INIT that D, C, B, A number.
inline bool lut4(uint32_t init, bool a, bool b, bool c, bool d) {
  return init >> (d << 3 | c << 2 | b << 1 | static_cast<int>(a)) & 1;
}

// CCU2C: two bits of a carry chain. Each half has a function of four inputs: where it is 1, it lets the carry through and the sum is the carry's
// complement; where it is 0, the half carries what the first quarter of the function, of A and B alone, says. A half that is "injected" takes no carry into its sum
// and generates none.
struct Carry {
  bool s0, s1, cout;
};
inline Carry ccu2c(uint32_t init0, uint32_t init1, bool injected0, bool injected1, bool cin, const bool (&in)[8]) {
  const bool through0 = lut4(init0, in[0], in[1], in[2], in[3]);
  const bool own0 = !injected0 && lut4(init0, in[0], in[1], false, false);
  const bool carry = through0 ? cin : own0;
  const bool through1 = lut4(init1, in[4], in[5], in[6], in[7]);
  const bool own1 = !injected1 && lut4(init1, in[4], in[5], false, false);
  return {through0 != (!injected0 && cin), through1 != (!injected1 && carry), through1 ? carry : own1};
}

// TRELLIS_FF at a rising edge: set or reset goes before the enable.
inline bool trellis_ff(bool q, bool set, bool lsr, bool enabled, bool di) { return lsr ? set : enabled ? di : q; }

// DP16KD: both ports of one width and on one clock, no output registers. Port A writes and reads, port B only reads; with 36 bits A only writes.
// Contents at power-on are not known. A word that B reads while A writes it is not defined in the device: here all of its bits come out
// wrong, so that whoever relies on either value is found out.
class BlockRam {
 public:
  BlockRam(unsigned width, std::mt19937& random) : width_(width), words_(size_t{1} << (14 - skipped())) {
    for (uint64_t& word : words_) word = (uint64_t{random()} << 32 | random()) & ones(width);
  }
  unsigned width() const { return width_; }

  // Address of the word, from a port's fourteen address bits.
  size_t word(unsigned address) const { return address >> skipped(); }
  uint64_t at(size_t word) const { return words_[word]; }
  // What port B reads; `written`: what A writes in the same clock, or none.
  uint64_t read(size_t word, size_t written) const { return words_[word] ^ (word == written ? ones(width_) : 0); }
  // Bits of the word that are written: of the bytes that the lowest bits of port A's address enable, or all, where a word is no more than a byte.
  uint64_t mask(unsigned address) const {
    if (width_ <= 9) return ones(width_);
    uint64_t found = 0;
    for (unsigned n = 0; n < width_ / 9; n++)
      if (address >> n & 1) found |= ones(9) << 9 * n;
    return found;
  }
  void write(unsigned address, uint64_t data) {
    const uint64_t bits = mask(address);
    uint64_t& place = words_[word(address)];
    place = (place & ~bits) | (data & bits);
  }

 private:
  static uint64_t ones(unsigned bits) { return (uint64_t{1} << bits) - 1; }
  // Address bits that lie within a word.
  unsigned skipped() const { return width_ == 36 ? 5 : width_ == 18 ? 4 : width_ == 9 ? 3 : width_ == 4 ? 2 : width_ == 2; }

  unsigned width_;
  std::vector<uint64_t> words_;
};

// MULT18X18D with all of its registers in use, always enabled and never reset: three clocks from operands to product.
class Multiplier {
 public:
  // A rising edge; the product at the output.
  uint64_t edge(uint32_t a, uint32_t b, bool a_signed, bool b_signed) {
    product_ = inside_;
    inside_ = static_cast<uint64_t>(a_ * b_) & ((uint64_t{1} << 36) - 1);
    a_ = extended(a, a_signed);
    b_ = extended(b, b_signed);
    return product_;
  }

 private:
  static int64_t extended(uint32_t value, bool is_signed) {
    return static_cast<int64_t>(value) - (is_signed && value >> 17 ? int64_t{1} << 18 : 0);
  }
  int64_t a_ = 0, b_ = 0;
  uint64_t inside_ = 0, product_ = 0;
};

}  // namespace gharial::ecp5
