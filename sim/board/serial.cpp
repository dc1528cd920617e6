// SPDX-License-Identifier: Apache-2.0
// A board's whole image in simulation, its serial port at a pseudo-terminal: `serial BIT_CLOCKS [drop=N]... [lose=N]...`.
//
// The first line of standard output is the terminal's name. drop: the Nth byte from the host (from 0) is lost on its way; lose: the Nth byte to it.
// A line "halted" or "running" follows whenever the board's lamp changes. It ends when standard input does.

#include <fcntl.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "Vgharial_board.h"
#include "verilated.h"

namespace {

constexpr int kBits = 10;          // of a byte on the wire: start, eight, stop
constexpr int kLook = 256;         // clocks between looks at the terminal
constexpr int kIdle = 100'000;     // clocks without a byte either way, after which the simulation lets others run
constexpr int kReset = 70'000;     // clocks until the board is out of reset

// One direction of the line at the board's rate. Bits are held for `clocks`.
class Sender {
 public:
  explicit Sender(int clocks) : clocks_(clocks) {}
  bool busy() const { return left_ > 0; }
  void begin(uint8_t byte) {
    frame_ = static_cast<uint32_t>(byte) << 1 | 1u << (kBits - 1);
    left_ = kBits * clocks_;
  }
  // Level of the line at this clock.
  bool step() {
    if (left_ == 0) return true;
    const int bit = kBits - 1 - (left_ - 1) / clocks_;
    --left_;
    return frame_ >> bit & 1;
  }

 private:
  int clocks_;
  int left_ = 0;
  uint32_t frame_ = 0;
};

class Receiver {
 public:
  explicit Receiver(int clocks) : clocks_(clocks) {}
  // Takes the line's level at this clock; true when a byte is whole.
  bool step(bool level, uint8_t* byte) {
    if (at_ < 0) {
      if (!level) at_ = 0;
      return false;
    }
    ++at_;
    const int bit = at_ / clocks_;
    if (at_ % clocks_ == clocks_ / 2 && bit >= 1 && bit <= 8) value_ = value_ >> 1 | (level ? 0x80u : 0u);
    if (at_ < (kBits - 1) * clocks_ + clocks_ / 2) return false;
    at_ = -1;
    *byte = static_cast<uint8_t>(value_);
    return level;  // no stop bit: no byte
  }

 private:
  int clocks_;
  int at_ = -1;
  unsigned value_ = 0;
};

int open_terminal() {
  const int fd = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  if (fd < 0 || grantpt(fd) != 0 || unlockpt(fd) != 0) return -1;
  // Held open on the other side too: without anyone there, reads would fail, and bytes would be echoed before the host has set its mode.
  const int other = open(ptsname(fd), O_RDWR | O_NOCTTY);
  termios mode{};
  if (other < 0 || tcgetattr(other, &mode) != 0) return -1;
  cfmakeraw(&mode);
  if (tcsetattr(other, TCSANOW, &mode) != 0) return -1;
  return fd;
}

void tick(Vgharial_board* board) {
  board->clk25 = 1;
  board->eval();
  board->clk25 = 0;
  board->eval();
}

bool at_end_of_input() {
  pollfd in{0, POLLIN, 0};
  char byte;
  return poll(&in, 1, 0) > 0 && read(0, &byte, 1) <= 0;
}

}  // namespace

int main(int argc, char** argv) {
  VerilatedContext context;
  context.commandArgs(argc, argv);
  const int clocks = argc > 1 ? std::atoi(argv[1]) : 0;
  if (clocks < 4) {
    std::fprintf(stderr, "usage: serial BIT_CLOCKS [drop=N]... [lose=N]...\n");
    return 2;
  }
  std::set<uint64_t> drop, lose;
  for (int i = 2; i < argc; ++i) {
    if (std::strncmp(argv[i], "drop=", 5) == 0) drop.insert(std::strtoull(argv[i] + 5, nullptr, 10));
    if (std::strncmp(argv[i], "lose=", 5) == 0) lose.insert(std::strtoull(argv[i] + 5, nullptr, 10));
  }
  const int terminal = open_terminal();
  if (terminal < 0) {
    std::perror("pseudo-terminal");
    return 1;
  }
  Vgharial_board board{&context};
  Sender sender{clocks};
  Receiver receiver{clocks};
  std::string waiting;  // from the host, not yet on the line
  size_t taken = 0;
  uint64_t from_host = 0, to_host = 0;
  int since_look = 0, quiet = 0;
  bool halted = false;
  board.user_btn1 = 0;
  board.serial_rx = 1;
  for (int clock = 0; clock < kReset; ++clock) tick(&board);
  std::printf("%s\n", ptsname(terminal));
  std::fflush(stdout);
  while (!context.gotFinish()) {
    if (++since_look >= kLook) {
      since_look = 0;
      if (at_end_of_input()) break;
      if (quiet > kIdle) {
        pollfd there{terminal, POLLIN, 0};
        poll(&there, 1, 5);
      }
      if (taken == waiting.size()) {
        char bytes[4096];
        const ssize_t count = read(terminal, bytes, sizeof bytes);
        waiting.assign(bytes, count > 0 ? static_cast<size_t>(count) : 0);
        taken = 0;
      }
    }
    if (!sender.busy() && taken < waiting.size()) {
      const uint8_t byte = static_cast<uint8_t>(waiting[taken++]);
      if (drop.count(from_host++) == 0) sender.begin(byte);
      quiet = 0;
    }
    board.serial_rx = sender.step();
    tick(&board);
    uint8_t byte;
    if (receiver.step(board.serial_tx, &byte)) {
      quiet = 0;
      if (lose.count(to_host++) == 0 && write(terminal, &byte, 1) != 1) std::perror("pseudo-terminal");
    }
    if ((board.user_led0 != 0) != halted) {
      halted = !halted;
      std::printf("%s\n", halted ? "halted" : "running");
      std::fflush(stdout);
    }
    ++quiet;
  }
  board.final();
  return 0;
}
