// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <termios.h>

#include <chrono>
#include <string>

namespace baton::tools {

// The terminal on standard output as a screen that is drawn in place, on a page
// of its own, so that what stood there before comes back. Ends by 'q', SIGINT,
// SIGTERM or SIGHUP. One per process; confined to its thread.
class LiveScreen {
 public:
  LiveScreen();
  ~LiveScreen();  // leaves the terminal as it was
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  // As many lines of `text` as there is room for; the last says how many more.
  void Draw(const std::string& text) const;
  // False when the user has asked for the end; waits no longer then.
  bool Wait(std::chrono::milliseconds time) const;

 private:
  bool has_keys_ = false;  // standard input is a terminal, too
  termios former_{};
};

}  // namespace baton::tools
