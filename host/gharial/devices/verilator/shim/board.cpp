// SPDX-License-Identifier: Apache-2.0
#ifdef GHARIAL_IN_MEMORY
#include "board.h"

#include <sys/mman.h>

#include <new>

namespace gharial {

namespace {

constexpr unsigned kPorts = GHARIAL_PORTS, kBytes = GHARIAL_PORT_BYTES, kWord = 4;
constexpr unsigned kOkay = 0, kSlaveError = 2;

// Packed arrays of the top, whatever type Verilator gives them: bytes, little-endian.
template <typename Signal>
uint8_t* bytes(Signal& signal) {
  return reinterpret_cast<uint8_t*>(&signal);
}

template <typename Signal>
bool bit(Signal& signal, unsigned at) {
  return bytes(signal)[at / 8] >> (at % 8) & 1;
}

template <typename Signal>
void set(Signal& signal, unsigned at, unsigned width, unsigned value) {
  for (unsigned i = 0; i < width; i++, at++) {
    uint8_t& byte = bytes(signal)[at / 8];
    byte = static_cast<uint8_t>((byte & ~(1u << at % 8)) | (value >> i & 1u) << at % 8);
  }
}

// The beat that a read channel offers; its response.
unsigned fill(BoardMemory& memory, const ReadPort& port, uint8_t* data) {
  const uint64_t from = port.beat_address() / port.width() * port.width();
  if (!memory.holds(from, port.width()) || memory.breaks(from, port.width())) return kSlaveError;
  std::memcpy(data, memory.at(from), port.width());
  return kOkay;
}

}  // namespace

BoardMemory::BoardMemory(uint64_t bytes, double rate, unsigned latency) : bytes_(bytes), rate_(rate), latency_(latency) {
  // Pages come into being as they are written.
  void* place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<uint8_t*>(place);
}

BoardMemory::~BoardMemory() { munmap(data_, bytes_); }

Board::Board(Vgharial& top, uint64_t bytes, double rate, unsigned latency)
    : top_(top),
      memory_(bytes, rate, latency),
      weights_(kPorts, ReadPort(kBytes)),
      host_read_(kWord),
      state_read_(kBytes),
      host_write_(kWord),
      state_write_(kBytes) {}

void Board::drive() {
  memory_.tick();

  // The few bytes of rings and state go before the many of weights.
  top_.m_axi_arready_i = host_read_.accepts();
  top_.m_axi_rvalid_i = host_read_.offer(memory_);
  if (top_.m_axi_rvalid_i) {
    top_.m_axi_rresp_i = static_cast<uint8_t>(fill(memory_, host_read_, bytes(top_.m_axi_rdata_i)));
    top_.m_axi_rlast_i = host_read_.last();
  }
  top_.m_axi_awready_i = host_write_.accepts();
  top_.m_axi_wready_i = host_write_.ready(memory_);
  top_.m_axi_bvalid_i = host_write_.answers(memory_);
  if (top_.m_axi_bvalid_i) top_.m_axi_bresp_i = host_write_.failed() ? kSlaveError : kOkay;

  top_.m_axi_state_arready_i = state_read_.accepts();
  top_.m_axi_state_rvalid_i = state_read_.offer(memory_);
  if (top_.m_axi_state_rvalid_i) {
    top_.m_axi_state_rresp_i = static_cast<uint8_t>(fill(memory_, state_read_, bytes(top_.m_axi_state_rdata_i)));
    top_.m_axi_state_rlast_i = state_read_.last();
  }
  top_.m_axi_state_awready_i = state_write_.accepts();
  top_.m_axi_state_wready_i = state_write_.ready(memory_);
  top_.m_axi_state_bvalid_i = state_write_.answers(memory_);
  if (top_.m_axi_state_bvalid_i) top_.m_axi_state_bresp_i = state_write_.failed() ? kSlaveError : kOkay;

  for (unsigned i = 0; i < kPorts; i++) {
    const unsigned p = static_cast<unsigned>((turn_ + i) % kPorts);
    ReadPort& port = weights_[p];
    const bool offers = port.offer(memory_);
    set(top_.m_axi_weights_arready_i, p, 1, port.accepts());
    set(top_.m_axi_weights_rvalid_i, p, 1, offers);
    if (offers) {
      set(top_.m_axi_weights_rresp_i, 2 * p, 2, fill(memory_, port, bytes(top_.m_axi_weights_rdata_i) + p * kBytes));
      set(top_.m_axi_weights_rlast_i, p, 1, port.last());
    }
  }
  turn_ = (turn_ + 1) % kPorts;
}

void Board::sample() {
  if (top_.rst_i) return;
  if (top_.m_axi_rvalid_i && top_.m_axi_rready_o) host_read_.taken();
  if (top_.m_axi_arvalid_o && top_.m_axi_arready_i)
    host_read_.address(memory_, top_.m_axi_araddr_o, top_.m_axi_arlen_o + 1u);
  if (top_.m_axi_bvalid_i && top_.m_axi_bready_o) host_write_.answered();
  if (top_.m_axi_wvalid_o && top_.m_axi_wready_i) {
    const uint8_t all = 0xF;
    host_write_.data(memory_, bytes(top_.m_axi_wdata_o), &all);
  }
  if (top_.m_axi_awvalid_o && top_.m_axi_awready_i) host_write_.address(top_.m_axi_awaddr_o, 1);

  if (top_.m_axi_state_rvalid_i && top_.m_axi_state_rready_o) state_read_.taken();
  if (top_.m_axi_state_arvalid_o && top_.m_axi_state_arready_i)
    state_read_.address(memory_, top_.m_axi_state_araddr_o, top_.m_axi_state_arlen_o + 1u);
  if (top_.m_axi_state_bvalid_i && top_.m_axi_state_bready_o) state_write_.answered();
  if (top_.m_axi_state_wvalid_o && top_.m_axi_state_wready_i)
    state_write_.data(memory_, bytes(top_.m_axi_state_wdata_o), bytes(top_.m_axi_state_wstrb_o));
  if (top_.m_axi_state_awvalid_o && top_.m_axi_state_awready_i)
    state_write_.address(top_.m_axi_state_awaddr_o, top_.m_axi_state_awlen_o + 1u);

  for (unsigned p = 0; p < kPorts; p++) {
    ReadPort& port = weights_[p];
    if (bit(top_.m_axi_weights_rvalid_i, p) && bit(top_.m_axi_weights_rready_o, p)) port.taken();
    if (bit(top_.m_axi_weights_arvalid_o, p) && bit(top_.m_axi_weights_arready_i, p)) {
      uint64_t address;
      std::memcpy(&address, bytes(top_.m_axi_weights_araddr_o) + 8 * p, 8);
      port.address(memory_, address, bytes(top_.m_axi_weights_arlen_o)[p] + 1u);
    }
  }
}

uint64_t Board::linear_read(uint64_t bytes) {
  constexpr uint64_t kChunk = 4096;
  BoardMemory memory(kChunk, GHARIAL_MEMORY_RATE, GHARIAL_MEMORY_LATENCY);
  std::vector<ReadPort> ports(kPorts, ReadPort(kBytes));
  uint64_t asked = 0, got = 0;
  while (got < bytes) {
    memory.tick();
    for (unsigned i = 0; i < kPorts; i++) {
      ReadPort& port = ports[(memory.now() + i) % kPorts];
      if (asked < bytes && port.accepts()) {
        port.address(memory, 0, kChunk / kBytes);
        asked += kChunk;
      }
      if (port.offer(memory)) {
        port.taken();
        got += kBytes;
      }
    }
  }
  return memory.now();
}

}  // namespace gharial
#endif
