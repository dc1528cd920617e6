// SPDX-License-Identifier: Apache-2.0
// A board's whole image in simulation, its Ethernet at a UDP socket: `ethernet HOST MAC IP UDP_PORT [drop=N]... [again=N]... [lose=N]... [twice=N]...`.
//
// MAC, IP, UDP_PORT: the board's. HOST: address of this machine whose socket stands for the board; the first line of standard output is the socket's port. A datagram that comes
// there goes to the board in an Ethernet frame, as from a host of its network, and what the board sends to that host goes back to whoever sent last. Addresses are asked
// for and told by ARP, either way.
// drop, again: the Nth datagram from the host (from 0) is lost, or comes twice; lose, twice: the Nth to it. It ends when standard input does.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "Vgharial_board.h"
#include "verilated.h"

namespace {

using Bytes = std::vector<uint8_t>;
using Mac = std::array<uint8_t, 6>;

constexpr int kLook = 64;          // clocks between looks at the socket
constexpr int kIdle = 20'000;      // clocks without a frame either way, after which the simulation lets others run
constexpr int kReset = 70'000;     // clocks until the board is out of reset
constexpr int kAsk = 20'000;       // clocks that it has to tell its address
constexpr int kGap = 12;           // clocks between frames
constexpr size_t kLeast = 60;      // bytes of a frame
constexpr Mac kBroadcast = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
constexpr Mac kHostMac = {0x02, 0, 0, 0, 0, 0x01};
constexpr uint16_t kArp = 0x0806, kIp = 0x0800;

void put16(Bytes& to, unsigned value) { to.insert(to.end(), {uint8_t(value >> 8), uint8_t(value)}); }
void put32(Bytes& to, uint32_t value) {
  put16(to, value >> 16);
  put16(to, value & 0xffff);
}
void put(Bytes& to, const Mac& mac) { to.insert(to.end(), mac.begin(), mac.end()); }
unsigned get16(const Bytes& from, size_t at) { return from.at(at) << 8 | from.at(at + 1); }
uint32_t get32(const Bytes& from, size_t at) { return uint32_t(get16(from, at)) << 16 | get16(from, at + 2); }

unsigned checksum(const Bytes& bytes, size_t at, size_t count) {
  uint32_t sum = 0;
  for (size_t n = 0; n < count; n += 2) sum += get16(bytes, at + n);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
}

// The board's network: the host's side of it.
class Network {
 public:
  Network(const Mac& mac, uint32_t ip, unsigned port) : mac_(mac), ip_(ip), host_ip_((ip & 0xffffff00) | ((ip & 0xff) == 100 ? 101 : 100)), port_(port) {}

  // An ARP packet: 1 asks for the board's address, 2 tells the host's.
  Bytes arp(unsigned operation) const {
    Bytes frame;
    put(frame, operation == 1 ? kBroadcast : mac_);
    put(frame, kHostMac);
    put16(frame, kArp);
    put16(frame, 1);
    put16(frame, kIp);
    put16(frame, 0x0604);
    put16(frame, operation);
    put(frame, kHostMac);
    put32(frame, host_ip_);
    put(frame, operation == 1 ? Mac{} : mac_);
    put32(frame, ip_);
    frame.resize(kLeast);
    return frame;
  }

  Bytes datagram(const Bytes& payload) {
    Bytes frame;
    put(frame, mac_);
    put(frame, kHostMac);
    put16(frame, kIp);
    put16(frame, 0x4500);
    put16(frame, 28 + payload.size());
    put16(frame, number_++);
    put16(frame, 0x4000);
    put16(frame, 0x4011);
    put16(frame, 0);
    put32(frame, host_ip_);
    put32(frame, ip_);
    const unsigned sum = checksum(frame, 14, 20);
    frame[24] = uint8_t(sum >> 8), frame[25] = uint8_t(sum);
    put16(frame, port_);
    put16(frame, port_);
    put16(frame, 8 + payload.size());
    put16(frame, 0);
    frame.insert(frame.end(), payload.begin(), payload.end());
    if (frame.size() < kLeast) frame.resize(kLeast);
    return frame;
  }

  enum class Kind { Other, Asked, Told, Datagram };
  // What a frame from the board is; the datagram's content.
  Kind take(const Bytes& frame, Bytes& payload) const {
    if (frame.size() < kLeast || std::memcmp(frame.data() + 6, mac_.data(), 6) != 0) return Kind::Other;
    if (get16(frame, 12) == kArp) {
      if (get32(frame, 28) != ip_ || get32(frame, 38) != host_ip_) return Kind::Other;
      return get16(frame, 20) == 1 ? Kind::Asked : std::memcmp(frame.data() + 22, mac_.data(), 6) == 0 ? Kind::Told : Kind::Other;
    }
    const bool mine = std::memcmp(frame.data(), kHostMac.data(), 6) == 0 && get16(frame, 12) == kIp && frame[14] == 0x45 && frame[23] == 17;
    if (!mine || checksum(frame, 14, 20) != 0 || get32(frame, 26) != ip_ || get32(frame, 30) != host_ip_) return Kind::Other;
    const size_t length = get16(frame, 38);
    if (get16(frame, 34) != port_ || get16(frame, 36) != port_ || length < 8 || get16(frame, 16) != length + 20 || frame.size() < 34 + length)
      return Kind::Other;
    payload.assign(frame.begin() + 42, frame.begin() + 34 + static_cast<std::ptrdiff_t>(length));
    return Kind::Datagram;
  }

 private:
  Mac mac_;
  uint32_t ip_, host_ip_;
  unsigned port_;
  unsigned number_ = 0;
};

// The PHY's streams: a byte a clock, a frame without a gap.
class Wire {
 public:
  explicit Wire(Vgharial_board& board) : board_(board) {}
  void send(Bytes frame) { waiting_.push_back(std::move(frame)); }
  bool busy() const { return !waiting_.empty(); }
  // One clock; true when a frame from the board is whole.
  bool tick(Bytes* frame) {
    const bool sending = pause_ == 0 && !waiting_.empty();
    board_.eth_phy_sink_valid = sending;
    if (sending) {
      board_.eth_phy_sink_data = waiting_.front()[at_++];
      if (at_ == waiting_.front().size()) {
        waiting_.pop_front();
        at_ = 0, pause_ = kGap;
      }
    } else if (pause_ > 0) {
      --pause_;
    }
    board_.clk100 = 1;
    board_.eval();
    board_.clk100 = 0;
    board_.eval();
    if (board_.eth_phy_source_valid) {
      received_.push_back(board_.eth_phy_source_data);
      return false;
    }
    if (received_.empty()) return false;
    *frame = std::move(received_);
    received_.clear();
    return true;
  }

 private:
  Vgharial_board& board_;
  std::deque<Bytes> waiting_;
  Bytes received_;
  size_t at_ = 0;
  int pause_ = 0;
};

bool at_end_of_input() {
  pollfd in{0, POLLIN, 0};
  char byte;
  return poll(&in, 1, 0) > 0 && read(0, &byte, 1) <= 0;
}

}  // namespace

int main(int argc, char** argv) {
  VerilatedContext context;
  context.commandArgs(argc, argv);
  Mac mac{};
  in_addr ip{}, here{};
  const bool good = argc >= 5 && inet_aton(argv[1], &here) && inet_aton(argv[3], &ip) &&
                    std::sscanf(argv[2], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4], &mac[5]) == 6;
  if (!good) {
    std::fprintf(stderr, "usage: ethernet HOST MAC IP UDP_PORT [drop=N]... [again=N]... [lose=N]... [twice=N]...\n");
    return 2;
  }
  std::set<uint64_t> drop, again, lose, twice;
  for (int i = 5; i < argc; ++i) {
    const std::string fault = argv[i];
    const auto at = fault.find('=');
    const std::string name = fault.substr(0, at);
    auto& places = name == "drop" ? drop : name == "again" ? again : name == "lose" ? lose : twice;
    places.insert(std::strtoull(fault.c_str() + at + 1, nullptr, 10));
  }
  sockaddr_in own{}, other{};
  own.sin_family = AF_INET, own.sin_addr = here;
  socklen_t size = sizeof own;
  const int link = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  if (link < 0 || bind(link, reinterpret_cast<sockaddr*>(&own), size) != 0 || getsockname(link, reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    std::perror("socket");
    return 1;
  }
  Vgharial_board board{&context};
  Wire wire{board};
  Network network{mac, ntohl(ip.s_addr), static_cast<unsigned>(std::atoi(argv[4]))};
  board.rst_n = 1;
  board.serial_rx = 1;
  Bytes frame, payload;
  for (int clock = 0; clock < kReset; ++clock) wire.tick(&frame);
  // Who has the board's address? A host asks before it sends.
  wire.send(network.arp(1));
  bool told = false;
  for (int clock = 0; clock < kAsk && !told; ++clock)
    told = wire.tick(&frame) && network.take(frame, payload) == Network::Kind::Told;
  if (!told) {
    std::fprintf(stderr, "the board does not tell its address\n");
    return 1;
  }
  std::printf("%d\n", ntohs(own.sin_port));
  std::fflush(stdout);
  uint64_t from_host = 0, to_host = 0;
  int since_look = 0, quiet = 0;
  while (!context.gotFinish()) {
    if (++since_look >= kLook) {
      since_look = 0;
      if (at_end_of_input()) break;
      if (quiet > kIdle) {
        pollfd there{link, POLLIN, 0};
        poll(&there, 1, 5);
      }
      uint8_t bytes[2048];
      size = sizeof other;
      const ssize_t count = wire.busy() ? 0 : recvfrom(link, bytes, sizeof bytes, 0, reinterpret_cast<sockaddr*>(&other), &size);
      if (count > 0) {
        quiet = 0;
        const uint64_t number = from_host++;
        const Bytes content(bytes, bytes + count);
        for (int copies = drop.count(number) ? 0 : again.count(number) ? 2 : 1; copies > 0; --copies) wire.send(network.datagram(content));
      }
    }
    ++quiet;
    if (!wire.tick(&frame)) continue;
    quiet = 0;
    switch (network.take(frame, payload)) {
      case Network::Kind::Asked:
        wire.send(network.arp(2));
        break;
      case Network::Kind::Datagram: {
        const uint64_t number = to_host++;
        for (int copies = lose.count(number) ? 0 : twice.count(number) ? 2 : 1; copies > 0; --copies)
          if (sendto(link, payload.data(), payload.size(), 0, reinterpret_cast<sockaddr*>(&other), sizeof other) < 0) std::perror("socket");
        break;
      }
      default:
        break;
    }
  }
  board.final();
  return 0;
}
