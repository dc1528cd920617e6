// SPDX-License-Identifier: Apache-2.0
// Keeps what instructions write, in the records that gharial.devices.records reads.
//
// The modules of sim/trace report three streams: instructions as they are issued, each unit of four rows as it passes a stage of the vector
// unit, and bytes written to the activation memory. Nothing in the vector unit overtakes, so the units of a stage belong to the issued
// instructions in their order, and their number tells where one ends: no instruction number has to travel along.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace gharial {

class Recorder {
 public:
  // An instruction that matrix and vector unit have taken.
  struct Job {
    uint8_t section;
    uint16_t instruction;
    unsigned post;
    unsigned last;  // mask of vectors whose output follows
    unsigned vectors;
    uint32_t groups;
  };

  void begin();  // anew
  void end();    // what was recorded stays
  const std::vector<uint8_t>& records() const { return records_; }
  const std::string& error() const { return error_; }
  void tables(uint32_t* words) const;

  // From the modules of sim/trace.
  void reset();
  void issued(const Job& job);
  void aux_issued(unsigned section, unsigned instruction, bool joint, unsigned cell_units, unsigned destination);
  void pre_activations(uint64_t four);
  void new_cell(int c);
  void new_h(int h);
  void int8_outputs(uint32_t four);
  void aux_bytes(uint32_t byte, uint64_t data, unsigned mask);
  void host_bytes(uint32_t byte, uint64_t data);
  void encode_begins(uint32_t byte, unsigned vectors, uint32_t bytes);
  void best_known(unsigned temperature, unsigned logit_bits);
  void scan_taken();
  void scan_done(int32_t lse);
  void table_word(uint32_t address, uint32_t word);

 private:
  struct Open {  // an issued instruction whose results are coming
    Job job;
    unsigned outputs[4];               // place of each vector among those that have an output
    std::vector<int16_t> values;       // y: outputs x rows
    std::vector<int16_t> cells;        // c, in order of the units
    std::vector<int8_t> bytes;         // h, or I8: outputs x rows
    size_t values_seen = 0;            // units, with and without output
    size_t bytes_seen = 0;             // units of I8, with and without output
    bool complete() const;
  };
  struct Evaluation {  // a joint evaluation and its log-sum-exp
    enum { Undecided, Scanning, Known, Without } state;
    int32_t value;
    unsigned temperature, logit_bits;
  };

  Open* at(size_t index);
  Open* next_cell(size_t& index, bool h);
  void step(Open& open, size_t& seen, size_t& index);
  void emit_jobs();
  void emit_evaluations();
  void record(unsigned section, unsigned kind, unsigned vector, unsigned instruction, uint32_t rows,
              const std::vector<uint8_t>& payload);
  void lost(const char* what);

  bool on_ = false;
  std::string error_;
  std::vector<uint8_t> records_;
  std::deque<Open> open_;
  size_t first_ = 0;                                       // index of the first of open_
  size_t value_at_ = 0, cell_at_ = 0, h_at_ = 0, byte_at_ = 0;  // index of the job that each stage is at
  struct {
    unsigned section, instruction;
    bool joint = false;
    uint32_t base = 0;
    size_t left = 0;
    std::vector<uint8_t> bytes;
  } aux_;
  std::vector<uint8_t> scratch_;  // what the host block wrote to the activation memory
  std::deque<Evaluation> evaluations_;
  uint32_t tables_[256] = {};
};

}  // namespace gharial
