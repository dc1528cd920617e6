// SPDX-License-Identifier: Apache-2.0
#include "netlist.h"

#include <fstream>
#include <stdexcept>

namespace gharial::ecp5 {

namespace {

constexpr uint32_t kMagic = 0x4c4e4847;

// The table as words, one after the other.
class Reader {
 public:
  explicit Reader(const std::string& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) throw std::runtime_error("no netlist " + path);
    words_.resize(static_cast<size_t>(file.tellg()) / 4);
    file.seekg(0);
    file.read(reinterpret_cast<char*>(words_.data()), static_cast<std::streamsize>(words_.size() * 4));
    if (word() != kMagic) throw std::runtime_error(path + " is no netlist");
  }
  uint32_t word() {
    if (at_ >= words_.size()) throw std::runtime_error("the netlist ends too early");
    return words_[at_++];
  }
  template <size_t N>
  std::array<Net, N> nets() {
    std::array<Net, N> found;
    for (Net& net : found) net = word();
    return found;
  }
  std::string text() {
    std::string found;
    for (uint32_t left = word(); left > 0; left--) found += static_cast<char>(word());
    return found;
  }

 private:
  std::vector<uint32_t> words_;
  size_t at_ = 0;
};

}  // namespace

Netlist::Netlist(const std::string& path, uint32_t seed) {
  Reader table(path);
  std::mt19937 random(seed);
  values_.assign(table.word(), 0);
  values_[1] = 1;  // nets 0 and 1 are the constants
  for (uint32_t left = table.word(); left > 0; left--) {
    const std::string name = table.text();
    std::vector<Net>& nets = ports_[name];
    for (uint32_t bits = table.word(); bits > 0; bits--) nets.push_back(table.word());
  }
  const auto gate = [&](Kind kind, unsigned ins, unsigned outs) -> Gate& {
    Gate& made = gates_.emplace_back();
    made.kind = kind;
    made.ins = ins;
    made.outs = outs;
    for (unsigned n = 0; n < ins; n++) made.in[n] = table.word();
    for (unsigned n = 0; n < outs; n++) made.out[n] = table.word();
    return made;
  };
  for (uint32_t left = table.word(); left > 0; left--) {
    Gate& made = gate(kLut, 4, 1);
    made.init = table.word();
  }
  for (uint32_t left = table.word(); left > 0; left--) gate(kMux, 3, 1);
  for (uint32_t left = table.word(); left > 0; left--) {
    Gate& made = gate(kCarry, 9, 3);
    made.init = table.word();
    made.flags = table.word();
  }
  for (uint32_t left = table.word(); left > 0; left--) {
    FlipFlop made{};
    made.lsr = table.word(), made.ce = table.word(), made.di = table.word(), made.q = table.word();
    made.enable = table.word(), made.set = table.word(), made.waits = true;
    values_[made.q] = made.set != 0;
    flip_flops_.push_back(made);
  }
  for (uint32_t left = table.word(); left > 0; left--) {
    gate(kRamRead, 4, 4).flags = static_cast<uint32_t>(distributed_.size());
    DistributedRam made{};
    made.wre = table.word(), made.address = table.nets<4>(), made.data = table.nets<4>();
    made.gate = gates_.size() - 1, made.waits = true;
    for (uint8_t& word : made.words) word = random() & 15;
    distributed_.push_back(made);
  }
  for (uint32_t left = table.word(); left > 0; left--) {
    RamPins made{BlockRam(table.word(), random), 0, 0, 0, {}, {}, {}, {}, {}, {}, false};
    made.cea = table.word(), made.ceb = table.word(), made.wea = table.word();
    made.ada = table.nets<14>(), made.adb = table.nets<14>();
    made.dia = table.nets<18>(), made.dib = table.nets<18>(), made.doa = table.nets<18>(), made.dob = table.nets<18>();
    made.a_read = table.word() != 0;
    rams_.push_back(made);
  }
  for (uint32_t left = table.word(); left > 0; left--) {
    MultiplierPins made{};
    made.a_signed = table.word(), made.b_signed = table.word();
    made.a = table.nets<18>(), made.b = table.nets<18>(), made.p = table.nets<36>();
    multipliers_.push_back(made);
  }
  order();
  settle();
}

// Who reads what, and in which order gates are evaluated: each after those that drive it.
void Netlist::order() {
  const uint32_t flops = static_cast<uint32_t>(gates_.size()), rams = flops + static_cast<uint32_t>(flip_flops_.size());
  std::vector<std::pair<Net, uint32_t>> pairs;
  for (uint32_t n = 0; n < gates_.size(); n++)
    for (unsigned i = 0; i < gates_[n].ins; i++) pairs.emplace_back(gates_[n].in[i], n);
  for (uint32_t n = 0; n < flip_flops_.size(); n++)
    for (const Net net : {flip_flops_[n].lsr, flip_flops_[n].ce, flip_flops_[n].di}) pairs.emplace_back(net, flops + n);
  for (uint32_t n = 0; n < distributed_.size(); n++) {
    pairs.emplace_back(distributed_[n].wre, rams + n);
    for (const auto& nets : {distributed_[n].address, distributed_[n].data})
      for (const Net net : nets) pairs.emplace_back(net, rams + n);
  }
  first_reader_.assign(values_.size() + 1, 0);
  for (const auto& [net, reader] : pairs) first_reader_[net + 1]++;
  for (size_t n = 1; n < first_reader_.size(); n++) first_reader_[n] += first_reader_[n - 1];
  readers_.resize(pairs.size());
  std::vector<uint32_t> next(first_reader_.begin(), first_reader_.end() - 1);
  for (const auto& [net, reader] : pairs) readers_[next[net]++] = reader;

  std::vector<uint32_t> unknown(gates_.size(), 0), ready;
  std::vector<uint8_t> driven(values_.size(), 0);
  for (const Gate& gate : gates_)
    for (unsigned i = 0; i < gate.outs; i++) driven[gate.out[i]] = 1;
  driven[values_.size() - 1] = 0;  // where outputs go that nobody reads
  for (uint32_t n = 0; n < gates_.size(); n++) {
    for (unsigned i = 0; i < gates_[n].ins; i++) unknown[n] += driven[gates_[n].in[i]];
    if (unknown[n] == 0) ready.push_back(n);
  }
  uint32_t deepest = 0;
  for (size_t at = 0; at < ready.size(); at++) {
    const Gate& gate = gates_[ready[at]];
    for (unsigned i = 0; i < gate.outs; i++) {
      const Net net = gate.out[i];
      if (net == values_.size() - 1) continue;
      for (uint32_t r = first_reader_[net]; r < first_reader_[net + 1]; r++) {
        if (readers_[r] >= flops) continue;
        Gate& reader = gates_[readers_[r]];
        if (reader.level <= gate.level) reader.level = gate.level + 1;
        if (reader.level > deepest) deepest = reader.level;
        if (--unknown[readers_[r]] == 0) ready.push_back(readers_[r]);
      }
    }
  }
  if (ready.size() != gates_.size()) throw std::runtime_error("the netlist has a loop without a register");
  waiting_.resize(deepest + 1);
  for (uint32_t n = 0; n < gates_.size(); n++) queue(n);
  for (uint32_t n = flops; n < rams + distributed_.size(); n++) due_.push_back(n);
}

void Netlist::queue(size_t gate) {
  if (gates_[gate].waits) return;
  gates_[gate].waits = true;
  waiting_[gates_[gate].level].push_back(static_cast<uint32_t>(gate));
}

void Netlist::set(Net net, bool value) {
  if (values_[net] == value) return;
  values_[net] = value;
  const size_t flops = gates_.size(), rams = flops + flip_flops_.size();
  for (uint32_t r = first_reader_[net]; r < first_reader_[net + 1]; r++) {
    const uint32_t reader = readers_[r];
    if (reader < flops) {
      queue(reader);
      continue;
    }
    bool& waits = reader < rams ? flip_flops_[reader - flops].waits : distributed_[reader - rams].waits;
    if (!waits) due_.push_back(reader);
    waits = true;
  }
}

void Netlist::settle() {
  for (auto& level : waiting_) {
    for (const uint32_t n : level) {
      gates_[n].waits = false;
      evaluate(gates_[n]);
    }
    level.clear();
  }
}

void Netlist::evaluate(Gate& gate) {
  const auto in = [&](unsigned n) { return values_[gate.in[n]] != 0; };
  switch (gate.kind) {
    case kLut:
      return set(gate.out[0], lut4(gate.init, in(0), in(1), in(2), in(3)));
    case kMux:
      return set(gate.out[0], in(2) ? in(1) : in(0));
    case kCarry: {
      const bool halves[8] = {in(1), in(2), in(3), in(4), in(5), in(6), in(7), in(8)};
      const Carry found = ccu2c(gate.init & 0xFFFF, gate.init >> 16, gate.flags & 1, gate.flags & 2, in(0), halves);
      set(gate.out[0], found.s0);
      set(gate.out[1], found.s1);
      return set(gate.out[2], found.cout);
    }
    case kRamRead: {
      const unsigned address = in(0) | in(1) << 1 | in(2) << 2 | in(3) << 3;
      return drive(gate.out.data(), 4, distributed_[gate.flags].words[address]);
    }
  }
}

void Netlist::drive(const Net* nets, unsigned count, uint64_t value) {
  for (unsigned n = 0; n < count; n++) set(nets[n], value >> n & 1);
}

void Netlist::edge() {
  const auto number = [&](const auto& nets) {
    uint64_t found = 0;
    for (size_t n = 0; n < nets.size(); n++) found |= uint64_t{values_[nets[n]]} << n;
    return found;
  };
  const auto later = [&](const Net* nets, unsigned count, uint64_t value) {
    for (unsigned n = 0; n < count; n++)
      if (values_[nets[n]] != (value >> n & 1)) changes_.emplace_back(nets[n], value >> n & 1);
  };
  // With the same inputs a second edge changes nothing in a flip-flop or a distributed RAM.
  const size_t flops = gates_.size(), rams = flops + flip_flops_.size();
  for (const uint32_t n : due_) {
    if (n < rams) {
      FlipFlop& cell = flip_flops_[n - flops];
      cell.waits = false;
      const bool enabled = cell.enable == 2 || (values_[cell.ce] != 0) != (cell.enable == 1);
      const bool next = trellis_ff(values_[cell.q], cell.set, values_[cell.lsr], enabled, values_[cell.di]);
      later(&cell.q, 1, next);
    } else {
      DistributedRam& cell = distributed_[n - rams];
      cell.waits = false;
      if (!values_[cell.wre]) continue;
      cell.words[number(cell.address)] = static_cast<uint8_t>(number(cell.data));
      queue(cell.gate);
    }
  }
  due_.clear();
  for (RamPins& cell : rams_) {
    const bool writes = values_[cell.cea] && values_[cell.wea];
    size_t written = ~size_t{0};
    unsigned address = 0;
    if (writes || (cell.a_read && values_[cell.cea])) {
      address = static_cast<unsigned>(number(cell.ada));
      if (cell.a_read) later(cell.doa.data(), 18, cell.ram.at(cell.ram.word(address)));
    }
    if (writes && cell.ram.mask(address) != 0) written = cell.ram.word(address);
    if (values_[cell.ceb]) {
      const uint64_t found = cell.ram.read(cell.ram.word(static_cast<unsigned>(number(cell.adb))), written);
      if (cell.ram.width() == 36) {
        later(cell.doa.data(), 18, found);
        later(cell.dob.data(), 18, found >> 18);
      } else {
        later(cell.dob.data(), 18, found);
      }
    }
    if (writes) cell.ram.write(address, number(cell.dia) | number(cell.dib) << 18);
  }
  for (MultiplierPins& cell : multipliers_) {
    const uint64_t found = cell.block.edge(static_cast<uint32_t>(number(cell.a)), static_cast<uint32_t>(number(cell.b)),
                                           values_[cell.a_signed], values_[cell.b_signed]);
    later(cell.p.data(), 36, found);
  }
  for (const auto& [net, value] : changes_) set(net, value);
  changes_.clear();
}

}  // namespace gharial::ecp5
