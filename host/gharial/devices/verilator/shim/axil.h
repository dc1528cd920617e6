// SPDX-License-Identifier: Apache-2.0
// An AXI4-Lite master on ports of the Verilated top: single words, or many back to back as fast as the slave takes them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gharial {

// How a transfer ended.
enum class Transfer { Done, Refused, Silent };

// Clocks without any progress after which a slave counts as dead. Far more than a memory that shares its port needs.
constexpr unsigned kPatience = 10000;

// The signals of one slave, as members of the top.
template <typename Address>
struct AxiLite {
  Address& awaddr;
  uint8_t& awprot;
  uint8_t& awvalid;
  uint8_t& awready;
  uint32_t& wdata;
  uint8_t& wstrb;
  uint8_t& wvalid;
  uint8_t& wready;
  uint8_t& bresp;
  uint8_t& bvalid;
  uint8_t& bready;
  Address& araddr;
  uint8_t& arprot;
  uint8_t& arvalid;
  uint8_t& arready;
  uint32_t& rdata;
  uint8_t& rresp;
  uint8_t& rvalid;
  uint8_t& rready;

  // No transfer.
  void rest() { awprot = awvalid = wvalid = bready = arprot = arvalid = rready = 0; }
};

// Writes `count` words from `address` on. The first and the last have byte strobes, the others are whole.
// `failed` becomes the address of the first word that was refused.
template <typename Address, typename Clock>
Transfer write_words(AxiLite<Address>& port, Clock& clock, uint32_t address, const uint32_t* words, size_t count,
                     unsigned first_strobes, unsigned last_strobes, uint32_t& failed) {
  size_t addressed = 0, given = 0, answered = 0;
  unsigned idle = 0;
  bool refused = false;
  while (answered < count && idle < kPatience) {
    port.awvalid = addressed < count;
    if (port.awvalid) port.awaddr = static_cast<Address>(address + 4 * addressed);
    port.wvalid = given < count;
    if (port.wvalid) {
      port.wdata = words[given];
      unsigned strobes = given == 0 ? first_strobes : 0xF;
      port.wstrb = given == count - 1 ? strobes & last_strobes : strobes;
    }
    port.bready = 1;
    clock.settle();
    const bool aw = port.awvalid && port.awready, w = port.wvalid && port.wready, b = port.bvalid;
    const bool error = b && port.bresp;
    clock.edge();
    if (error && !refused) {
      refused = true;
      failed = static_cast<uint32_t>(address + 4 * answered);
    }
    addressed += aw;
    given += w;
    answered += b;
    idle = aw || w || b ? 0 : idle + 1;
  }
  port.rest();
  if (answered < count) return Transfer::Silent;
  return refused ? Transfer::Refused : Transfer::Done;
}

// Reads `count` words from `address` on; otherwise as write_words.
template <typename Address, typename Clock>
Transfer read_words(AxiLite<Address>& port, Clock& clock, uint32_t address, uint32_t* words, size_t count,
                    uint32_t& failed) {
  size_t addressed = 0, answered = 0;
  unsigned idle = 0;
  bool refused = false;
  while (answered < count && idle < kPatience) {
    port.arvalid = addressed < count;
    if (port.arvalid) port.araddr = static_cast<Address>(address + 4 * addressed);
    port.rready = 1;
    clock.settle();
    const bool ar = port.arvalid && port.arready, r = port.rvalid;
    const bool error = r && port.rresp;
    const uint32_t word = port.rdata;
    clock.edge();
    if (error && !refused) {
      refused = true;
      failed = static_cast<uint32_t>(address + 4 * answered);
    }
    if (r) words[answered] = word;
    addressed += ar;
    answered += r;
    idle = ar || r ? 0 : idle + 1;
  }
  port.rest();
  if (answered < count) return Transfer::Silent;
  return refused ? Transfer::Refused : Transfer::Done;
}

}  // namespace gharial
