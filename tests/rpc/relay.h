// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"

namespace baton::testing {

// A way to a server on 127.0.0.1 that can be cut: what is said on connections
// that were there, or were made meanwhile, is lost for ever, and they never
// end; those that are made later work. Thread-safe.
class Relay {
 public:
  explicit Relay(const std::string& server);  // "127.0.0.1:port"
  ~Relay();
  const std::string& address() const { return address_; }
  void Cut();
  void Mend();

 private:
  void Accept();
  void Carry(int from, int to, int life);
  bool Works(int life);

  const int server_port_;
  int listener_ = -1;
  std::string address_;
  Mutex mutex_;
  bool cut_ ABSL_GUARDED_BY(mutex_) = false;
  int life_ ABSL_GUARDED_BY(mutex_) = 0;  // of the connections that work
  std::vector<int> sockets_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> carriers_ ABSL_GUARDED_BY(mutex_);
  std::thread accepting_;
};

}  // namespace baton::testing
