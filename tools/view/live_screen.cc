// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/view/live_screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace baton::tools {
namespace {

volatile sig_atomic_t asked_to_end = 0;

void Handle(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;  // without SA_RESTART: it ends a wait
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    ::sigaction(signal, &action, nullptr);
}

void Put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

size_t RowsOfTerminal() {
  winsize size{};
  const bool known =
      ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1;
  return known ? size.ws_row : 24;
}

}  // namespace

LiveScreen::LiveScreen() {
  asked_to_end = 0;
  Handle([](int) { asked_to_end = 1; });
  has_keys_ = ::tcgetattr(STDIN_FILENO, &former_) == 0;
  if (has_keys_) {
    termios keys = former_;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  }
  Put("\033[?1049h\033[?25l\033[2J");  // alternate screen, no cursor
}

LiveScreen::~LiveScreen() {
  Put("\033[?25h\033[?1049l");
  if (has_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &former_);
  Handle(SIG_DFL);
}

void LiveScreen::Draw(const std::string& text) const {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  const size_t rows = RowsOfTerminal();
  if (lines.size() > rows) {
    const size_t left_out = lines.size() - (rows - 1);
    lines.resize(rows - 1);
    lines.push_back(absl::StrCat("... ", left_out, " more lines"));
  }
  // Overwrites line by line, so that nothing flickers.
  Put(absl::StrCat("\033[H", absl::StrJoin(lines, "\033[K\r\n"),
                   "\033[K\033[J"));
}

bool LiveScreen::Wait(std::chrono::milliseconds time) const {
  const auto end = std::chrono::steady_clock::now() + time;
  while (asked_to_end == 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return true;
    pollfd keys{
        .fd = has_keys_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
    if (::poll(&keys, 1, static_cast<int>(left.count())) <= 0) continue;
    char key = 0;
    if (::read(STDIN_FILENO, &key, 1) != 1 || key == 'q') return false;
  }
  return false;
}

}  // namespace baton::tools
