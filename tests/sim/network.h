// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/executor.h"
#include "tests/sim/rng.h"
#include "tests/sim/world.h"

namespace baton::sim {

struct NetworkOptions {
  uint64_t seed = 0;
  Nanos least_delay{50'000};
  Nanos most_delay{400'000};
  // The probability that a packet takes up to `slowest` instead.
  double slow = 0;
  Nanos slowest{0};
  // These probabilities apply only to messages.
  double drop = 0;
  double duplicate = 0;
  // If true, a lost message ends its connection, as with TCP. If false, the
  // connection stays, which no real one does but an agent survives.
  bool resets = false;
};

// The machines, by number, and the ways between them. What is sent while a way
// is closed arrives when it is open again, as with TCP. Used by the running
// thread.
class Network {
 public:
  explicit Network(const NetworkOptions& options)
      : options_(options), random_(options.seed) {}

  Rng& random() { return random_; }
  void Close(int from, int to, Nanos length);
  bool closed(int from, int to) const;
  // Holds back large messages, which real connections send on their own stream.
  void Clog(int from, int to, Nanos length);
  // Returns how much longer the way is clogged.
  Nanos clogged(int from, int to) const;
  // Opens all ways; from now on no message is lost or duplicated.
  void Heal() {
    options_.drop = options_.duplicate = 0;
    closed_until_.clear();
    clogged_until_.clear();
  }
  bool LosesOne() { return random_.Chance(options_.drop); }
  bool resets() const { return options_.resets; }
  bool DoublesOne() { return random_.Chance(options_.duplicate); }

  // Runs `arrive` in `group` when the packet has arrived. An `ordered` packet
  // arrives after everything sent before it on this way, and before everything
  // sent later.
  void Carry(int from, int to, int group, bool ordered, Task arrive);

 private:
  using Way = std::pair<int, int>;
  struct Traffic {
    Nanos last{0};  // the last arrival
    Nanos fence{0};
  };

  NetworkOptions options_;
  Rng random_;
  std::map<Way, Nanos> closed_until_;
  std::map<Way, Nanos> clogged_until_;
  std::map<Way, Traffic> traffic_;
};

}  // namespace baton::sim
