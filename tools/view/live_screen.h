// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <termios.h>

#include <chrono>
#include <string>

namespace baton::tools {

// Draws on the terminal at standard output in place, on the alternate screen,
// so that the former contents come back. 'q', SIGINT, SIGTERM or SIGHUP end it.
// One per process; confined to its thread.
class LiveScreen {
 public:
  LiveScreen();
  ~LiveScreen();  // restores the terminal
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  // Draws as many lines of `text` as fit; the last one says how many more there
  // are.
  void Draw(const std::string& text) const;
  // Waits for `time`. Returns false, without waiting, once the user has asked
  // for the end.
  bool Wait(std::chrono::milliseconds time) const;

 private:
  bool has_keys_ = false;  // standard input is a terminal
  termios former_{};
};

}  // namespace baton::tools
