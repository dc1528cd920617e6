// SPDX-License-Identifier: Apache-2.0
#include "recorder.h"

#include <cstring>

namespace gharial {

namespace {

// Of the configuration: set by the build.
constexpr size_t kRows = GHARIAL_ROWS;
constexpr size_t kCols = GHARIAL_COLS;
constexpr size_t kUnits = kRows / 4;  // of a row group; values of a cell unit

// Post-operations (docs/isa.md, section 4) and, of the same numbers, kinds of records; further kinds.
enum : unsigned { kNone, kCell, kI16, kI8, kLogit, kJoint, kLse, kFeatures };
enum : unsigned { kJointSection = 2, kEncodeSection = 1 };

constexpr uint32_t kFirstTableWord = 2048;  // of exp: sigmoid and tanh lie before it

template <typename T>
void append(std::vector<uint8_t>& bytes, const T* values, size_t count) {
  const auto* from = reinterpret_cast<const uint8_t*>(values);
  bytes.insert(bytes.end(), from, from + count * sizeof(T));
}

unsigned ones(unsigned mask) { return static_cast<unsigned>(__builtin_popcount(mask)); }

}  // namespace

void Recorder::begin() {
  reset();
  records_.clear();
  error_.clear();
  on_ = true;
}

void Recorder::end() {
  // The last evaluation, where nobody asked for its log-sum-exp: no further one comes to show it.
  if (!evaluations_.empty() && evaluations_.back().state == Evaluation::Undecided)
    evaluations_.back().state = Evaluation::Without;
  emit_evaluations();
  reset();
  on_ = false;
}

void Recorder::reset() {
  open_.clear();
  evaluations_.clear();
  first_ = value_at_ = cell_at_ = h_at_ = byte_at_ = 0;
  aux_.left = 0;
}

void Recorder::tables(uint32_t* words) const { std::memcpy(words, tables_, sizeof tables_); }

void Recorder::lost(const char* what) {
  if (error_.empty()) error_ = what;
}

// Instructions of the matrix and vector unit.

void Recorder::issued(const Job& job) {
  if (!on_) return;
  open_.push_back({});
  Open& open = open_.back();
  open.job = job;
  unsigned place = 0;
  for (unsigned v = 0; v < 4; v++) open.outputs[v] = job.last >> v & 1 ? place++ : 0;
  if (job.post != kNone) open.values.resize(place * job.groups * kRows);
  if (job.post == kI8) open.bytes.resize(place * job.groups * kRows);
}

bool Recorder::Open::complete() const {
  const size_t units = job.groups * job.vectors * kUnits, outputs_of = ones(job.last) * job.groups * kUnits;
  if (values_seen < units) return false;
  if (job.post == kCell) return cells.size() == outputs_of && bytes.size() == outputs_of;
  return job.post != kI8 || job.last == 0 || bytes_seen == units;
}

Recorder::Open* Recorder::at(size_t index) {
  if (index - first_ < open_.size()) return &open_[index - first_];
  lost("the trace began, or the machine was reset, while an instruction was at work");
  return nullptr;
}

// Goes on to the next unit of a stage, and to the next job after the last.
void Recorder::step(Open& open, size_t& seen, size_t& index) {
  if (++seen == open.job.groups * open.job.vectors * kUnits) index++;
}

void Recorder::pre_activations(uint64_t four) {
  if (!on_) return;
  Open* open = at(value_at_);
  if (!open) return;
  const Job& job = open->job;
  const size_t unit = open->values_seen;
  const unsigned vector = unit / kUnits % job.vectors;
  if (job.post != kNone && job.last >> vector & 1) {
    const size_t group = unit / kUnits / job.vectors, quad = unit % kUnits;
    std::memcpy(&open->values[(open->outputs[vector] * job.groups + group) * kRows + 4 * quad], &four, sizeof four);
  }
  step(*open, open->values_seen, value_at_);
  emit_jobs();
}

void Recorder::int8_outputs(uint32_t four) {
  if (!on_) return;
  // Only units with an output come here, so those without are passed over.
  for (;;) {
    Open* open = at(byte_at_);
    if (!open) return;
    const Job& job = open->job;
    if (job.post != kI8 || job.last == 0) {
      byte_at_++;
      continue;
    }
    const size_t unit = open->bytes_seen, group = unit / kUnits / job.vectors, quad = unit % kUnits;
    const unsigned vector = unit / kUnits % job.vectors;
    const bool has_output = job.last >> vector & 1;
    if (has_output)
      std::memcpy(&open->bytes[(open->outputs[vector] * job.groups + group) * kRows + 4 * quad], &four, sizeof four);
    step(*open, open->bytes_seen, byte_at_);
    if (!has_output) continue;
    // Vectors behind the last one with an output have nothing to wait for.
    while (open->bytes_seen < job.groups * job.vectors * kUnits &&
           !(job.last >> (open->bytes_seen / kUnits % job.vectors) & 1))
      step(*open, open->bytes_seen, byte_at_);
    break;
  }
  emit_jobs();
}

// The job that the next c or h belongs to.
Recorder::Open* Recorder::next_cell(size_t& index, bool h) {
  for (;; index++) {
    Open* open = at(index);
    if (!open) return nullptr;
    const size_t there = h ? open->bytes.size() : open->cells.size();
    if (open->job.post == kCell && there < ones(open->job.last) * open->job.groups * kUnits) return open;
  }
}

void Recorder::new_cell(int c) {
  if (!on_) return;
  if (Open* open = next_cell(cell_at_, false)) open->cells.push_back(static_cast<int16_t>(c));
  emit_jobs();
}

void Recorder::new_h(int h) {
  if (!on_) return;
  if (Open* open = next_cell(h_at_, true)) open->bytes.push_back(static_cast<int8_t>(h));
  emit_jobs();
}

// Instructions of the aux unit.

void Recorder::aux_issued(unsigned section, unsigned instruction, bool joint, unsigned cell_units,
                          unsigned destination) {
  if (!on_) return;
  aux_.section = section;
  aux_.instruction = instruction;
  aux_.joint = joint;
  aux_.base = destination * kCols;
  aux_.left = joint ? cell_units * kUnits : 0;
  aux_.bytes.assign(aux_.left, 0);
}

void Recorder::aux_bytes(uint32_t byte, uint64_t data, unsigned mask) {
  if (!on_ || !aux_.left) return;
  for (unsigned i = 0; i < 8; i++) {
    const size_t place = byte + i - aux_.base;
    if (!(mask >> i & 1) || place >= aux_.bytes.size()) continue;
    aux_.bytes[place] = static_cast<uint8_t>(data >> 8 * i);
    if (--aux_.left == 0)
      record(aux_.section, kJoint, 0, aux_.instruction, static_cast<uint32_t>(aux_.bytes.size()), aux_.bytes);
  }
}

// Features: what the host block wrote to scratch before section encode begins.

void Recorder::host_bytes(uint32_t byte, uint64_t data) {
  if (!on_) return;
  if (scratch_.size() < byte + 8) scratch_.resize(byte + 8);
  std::memcpy(&scratch_[byte], &data, kCols < 8 ? kCols : 8);
}

void Recorder::encode_begins(uint32_t byte, unsigned vectors, uint32_t bytes) {
  if (!on_) return;
  if (scratch_.size() < byte + vectors * bytes) scratch_.resize(byte + vectors * bytes);
  for (unsigned v = 0; v < vectors; v++) {
    const auto from = scratch_.begin() + byte + v * bytes;
    record(kEncodeSection, kFeatures, v, 0, 1, {from, from + bytes});
  }
}

// Log-sum-exps. A scan is taken before the next evaluation's logits are complete; an evaluation without one has none.

void Recorder::best_known(unsigned temperature, unsigned logit_bits) {
  if (!on_) return;
  if (!evaluations_.empty() && evaluations_.back().state == Evaluation::Undecided)
    evaluations_.back().state = Evaluation::Without;
  evaluations_.push_back({Evaluation::Undecided, 0, temperature, logit_bits});
  emit_evaluations();
}

void Recorder::scan_taken() {
  if (!on_) return;
  if (evaluations_.empty()) return lost("a scan without a joint evaluation");
  evaluations_.back().state = Evaluation::Scanning;
}

void Recorder::scan_done(int32_t lse) {
  if (!on_) return;
  for (auto& evaluation : evaluations_) {
    if (evaluation.state != Evaluation::Scanning) continue;
    evaluation.state = Evaluation::Known;
    evaluation.value = lse;
    return emit_evaluations();
  }
  lost("a scan ended that had not begun");
}

void Recorder::table_word(uint32_t address, uint32_t word) {
  if (address - kFirstTableWord < 256) tables_[address - kFirstTableWord] = word;
}

// Records.

void Recorder::emit_evaluations() {
  while (!evaluations_.empty()) {
    const Evaluation& front = evaluations_.front();
    if (front.state == Evaluation::Undecided || front.state == Evaluation::Scanning) return;
    const bool known = front.state == Evaluation::Known;
    const int32_t settings = static_cast<int32_t>(front.temperature | front.logit_bits << 16);
    std::vector<uint8_t> payload;
    append(payload, known ? &front.value : &settings, 1);
    record(kJointSection, kLse, 0, 0, known, payload);
    evaluations_.pop_front();
  }
}

void Recorder::emit_jobs() {
  while (!open_.empty() && open_.front().complete()) {
    const Open& front = open_.front();
    const Job& job = front.job;
    const size_t rows = job.groups * kRows, cells = job.groups * kUnits;
    for (unsigned v = 0; v < job.vectors && job.post != kNone; v++) {
      if (!(job.last >> v & 1)) continue;
      const size_t place = front.outputs[v];
      std::vector<uint8_t> payload;
      if (job.post != kI8) append(payload, &front.values[place * rows], rows);
      if (job.post == kCell) append(payload, &front.cells[place * cells], cells);
      if (job.post == kCell) append(payload, &front.bytes[place * cells], cells);
      if (job.post == kI8) append(payload, &front.bytes[place * rows], rows);
      record(job.section, job.post, v, job.instruction, static_cast<uint32_t>(rows), payload);
    }
    open_.pop_front();
    first_++;
    for (size_t* index : {&value_at_, &cell_at_, &h_at_, &byte_at_})
      if (*index < first_) *index = first_;
  }
}

void Recorder::record(unsigned section, unsigned kind, unsigned vector, unsigned instruction, uint32_t rows,
                      const std::vector<uint8_t>& payload) {
  const uint8_t bytes[4] = {static_cast<uint8_t>(section), static_cast<uint8_t>(kind), static_cast<uint8_t>(vector), 0};
  const uint16_t halves[2] = {static_cast<uint16_t>(instruction), 0};
  const auto size = static_cast<uint32_t>(payload.size());
  const uint32_t words[3] = {rows, size, size};
  append(records_, bytes, 4);
  append(records_, halves, 2);
  append(records_, words, 3);
  append(records_, payload.data(), payload.size());
}

}  // namespace gharial
