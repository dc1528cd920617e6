// SPDX-License-Identifier: Apache-2.0
// What the modules of sim/trace and sim/profile call: handed to the machine that this thread simulates.
#include "machine.h"

using gharial::Profile;
using gharial::Recorder;
using gharial::Simulating;

extern "C" {

void gharial_trace_reset() {
  if (Recorder* r = Simulating::recorder()) r->reset();
}

void gharial_trace_issued(int section, int instruction, int post, int last, int vectors, int groups) {
  Recorder* r = Simulating::recorder();
  if (r)
    r->issued({static_cast<uint8_t>(section), static_cast<uint16_t>(instruction), static_cast<unsigned>(post),
               static_cast<unsigned>(last), static_cast<unsigned>(vectors), static_cast<uint32_t>(groups)});
}

void gharial_trace_aux_issued(int section, int instruction, int joint, int cell_units, int destination) {
  if (Recorder* r = Simulating::recorder()) r->aux_issued(section, instruction, joint, cell_units, destination);
}

void gharial_trace_pre_activations(long long four) {
  if (Recorder* r = Simulating::recorder()) r->pre_activations(static_cast<uint64_t>(four));
}

void gharial_trace_new_cell(int c) {
  if (Recorder* r = Simulating::recorder()) r->new_cell(c);
}

void gharial_trace_new_h(int h) {
  if (Recorder* r = Simulating::recorder()) r->new_h(h);
}

void gharial_trace_int8_outputs(int four) {
  if (Recorder* r = Simulating::recorder()) r->int8_outputs(static_cast<uint32_t>(four));
}

void gharial_trace_aux_bytes(int byte, long long data, int mask) {
  if (Recorder* r = Simulating::recorder()) r->aux_bytes(byte, static_cast<uint64_t>(data), mask);
}

void gharial_trace_host_bytes(int byte, long long data) {
  if (Recorder* r = Simulating::recorder()) r->host_bytes(byte, static_cast<uint64_t>(data));
}

void gharial_trace_encode_begins(int byte, int vectors, int bytes) {
  if (Recorder* r = Simulating::recorder()) r->encode_begins(byte, vectors, bytes);
}

void gharial_trace_best_known(int temperature, int logit_bits) {
  if (Recorder* r = Simulating::recorder()) r->best_known(temperature, logit_bits);
}

void gharial_trace_scan_taken() {
  if (Recorder* r = Simulating::recorder()) r->scan_taken();
}

void gharial_trace_scan_done(int lse) {
  if (Recorder* r = Simulating::recorder()) r->scan_done(lse);
}

void gharial_trace_table_word(int address, int word) {
  if (Recorder* r = Simulating::recorder()) r->table_word(address, word);
}

int gharial_profile_on() {
  const Profile* p = Simulating::profile();
  return p && p->on();
}

void gharial_profile_clock(int now, int enabled, int latched, int reset) {
  if (Profile* p = Simulating::profile()) p->clock(static_cast<unsigned>(now), enabled != 0, latched != 0, reset != 0);
}

void gharial_profile_units(int taken, int left, int waiting, int at_work, int weight_bytes, int state_bytes,
                           int reset) {
  if (Profile* p = Simulating::profile())
    p->units(taken, left != 0, waiting, static_cast<unsigned>(at_work), static_cast<unsigned>(weight_bytes),
             static_cast<unsigned>(state_bytes), reset != 0);
}
}
