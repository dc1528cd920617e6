// SPDX-License-Identifier: Apache-2.0
// A netlist in place of the Verilated top gharial_onchip: the same ports, the same eval.
#pragma once

#include <cstdint>
#include <vector>

#include "netlist.h"
#include "verilated.h"

class Vgharial {
 public:
  explicit Vgharial(VerilatedContext* context) : netlist_(GHARIAL_NETLIST, context->seed()) {
    const auto in = [&](const char* name, auto& member) { bind(inputs_, name, member); };
    const auto out = [&](const char* name, auto& member) { bind(outputs_, name, member); };
    in("rst_i", rst_i);
#define GHARIAL_SLAVE(port)                                                                                        \
  in(#port "_awaddr", port##_awaddr), in(#port "_awprot", port##_awprot), in(#port "_awvalid", port##_awvalid);    \
  in(#port "_wdata", port##_wdata), in(#port "_wstrb", port##_wstrb), in(#port "_wvalid", port##_wvalid);          \
  in(#port "_bready", port##_bready), in(#port "_araddr", port##_araddr), in(#port "_arprot", port##_arprot);      \
  in(#port "_arvalid", port##_arvalid), in(#port "_rready", port##_rready);                                        \
  out(#port "_awready", port##_awready), out(#port "_wready", port##_wready), out(#port "_bresp", port##_bresp);   \
  out(#port "_bvalid", port##_bvalid), out(#port "_arready", port##_arready), out(#port "_rdata", port##_rdata);   \
  out(#port "_rresp", port##_rresp), out(#port "_rvalid", port##_rvalid)
    GHARIAL_SLAVE(s_axil_csr);
    GHARIAL_SLAVE(s_axil_mem);
#undef GHARIAL_SLAVE
    out("irq_o", irq_o), out("completions_o", completions_o), out("halted_o", halted_o);
  }

  void eval() {
    if (clk_i && !clock_) netlist_.edge();
    clock_ = clk_i;
    for (const Port& port : inputs_) {
      const uint32_t value = port.wide ? *port.wide : *port.narrow;
      for (size_t n = 0; n < port.nets->size(); n++) netlist_.set((*port.nets)[n], value >> n & 1);
    }
    netlist_.settle();
    for (const Port& port : outputs_) {
      uint32_t value = 0;
      for (size_t n = 0; n < port.nets->size(); n++) value |= uint32_t{netlist_.get((*port.nets)[n])} << n;
      if (port.wide)
        *port.wide = value;
      else
        *port.narrow = static_cast<uint8_t>(value);
    }
  }

  uint8_t clk_i = 0, rst_i = 0, irq_o = 0, halted_o = 0;
  uint32_t completions_o = 0;
#define GHARIAL_SLAVE(port, Address)                                                                                 \
  Address port##_awaddr = 0, port##_araddr = 0;                                                                      \
  uint32_t port##_wdata = 0, port##_rdata = 0;                                                                       \
  uint8_t port##_awprot = 0, port##_awvalid = 0, port##_awready = 0, port##_wstrb = 0, port##_wvalid = 0;            \
  uint8_t port##_wready = 0, port##_bresp = 0, port##_bvalid = 0, port##_bready = 0, port##_arprot = 0;              \
  uint8_t port##_arvalid = 0, port##_arready = 0, port##_rresp = 0, port##_rvalid = 0, port##_rready = 0
  GHARIAL_SLAVE(s_axil_csr, uint8_t);
  GHARIAL_SLAVE(s_axil_mem, uint32_t);
#undef GHARIAL_SLAVE

 private:
  struct Port {
    const std::vector<gharial::ecp5::Net>* nets;
    uint8_t* narrow;
    uint32_t* wide;
  };
  void bind(std::vector<Port>& ports, const char* name, uint8_t& member) {
    ports.push_back({&netlist_.port(name), &member, nullptr});
  }
  void bind(std::vector<Port>& ports, const char* name, uint32_t& member) {
    ports.push_back({&netlist_.port(name), nullptr, &member});
  }

  gharial::ecp5::Netlist netlist_;
  std::vector<Port> inputs_, outputs_;
  uint8_t clock_ = 0;
};
