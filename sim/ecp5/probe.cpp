// SPDX-License-Identifier: Apache-2.0
// Any netlist by its ports, for tests of the cells.
#include <cstring>

#include "netlist.h"

using gharial::ecp5::Netlist;

extern "C" {

// Null where it cannot be read, with the reason.
Netlist* probe_open(const char* path, uint32_t seed, char* why, size_t size) {
  try {
    return new Netlist(path, seed);
  } catch (const std::exception& error) {
    std::strncpy(why, error.what(), size - 1);
    why[size - 1] = '\0';
    return nullptr;
  }
}
void probe_close(Netlist* netlist) { delete netlist; }
void probe_set(Netlist* netlist, const char* port, uint64_t value) {
  unsigned bit = 0;
  for (const auto net : netlist->port(port)) netlist->set(net, value >> bit++ & 1);
  netlist->settle();
}
uint64_t probe_get(const Netlist* netlist, const char* port) {
  uint64_t value = 0;
  unsigned bit = 0;
  for (const auto net : netlist->port(port)) value |= uint64_t{netlist->get(net)} << bit++;
  return value;
}
void probe_edge(Netlist* netlist) {
  netlist->edge();
  netlist->settle();
}
}
