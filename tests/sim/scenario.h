// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/disk.h"
#include "tests/sim/network.h"
#include "tests/sim/world.h"

namespace baton::sim {

// Something that goes wrong.
struct Fault {
  enum class Kind {
    kKill,            // the process of machine a; its kernel tells its peers
    kPowerOff,        // the same, and nobody is told
    kStop,            // the process of machine a, for `length`
    kClose,           // the way from a to b, for `length`
    kClog,            // the same, for what is large
    kIsolate,         // machine a from all others, both ways, for `length`
    kSever,           // the connection between a and b
    kLeave,           // the worker of machine a leaves in order
    kKillRendezvous,  // it begins anew after `length`
    kStopRendezvous,  // for `length`
  } kind = Kind::kKill;
  Nanos at{0};
  int a = 0;
  int b = 0;
  // Where a worker ends: until it is started again.
  Nanos length{0};

  std::string ToString() const;
};

// One run, as the seed alone makes it.
struct Scenario {
  uint64_t seed = 0;
  int workers = 3;
  bool servers = false;  // parameter servers, to which all workers push
  // Of a pipeline that the first worker trains; 0: there is none.
  int stages = 0;
  int64_t steps = 0;     // until its training is over
  int spares = 0;        // the last workers
  bool journal = false;  // of its trainers
  bool standby = false;  // worker 1 trains where the first one is lost
  std::chrono::milliseconds lease{1000};
  std::chrono::milliseconds resend_after{200};
  Nanos pause{0};     // between two calls of a worker
  Nanos duration{0};  // of calls and faults
  WorldOptions world;
  NetworkOptions network;
  DiskOptions disk;
  std::string folder;         // for files; gone with the run
  std::vector<Fault> faults;  // by time

  static Scenario Of(uint64_t seed, bool pipelines = false);
  std::string NameOf(int machine) const;
  void AddServers() {
    servers = true;
    LoseConnections();
  }
  // For workers that call each other without a timeout, as connections that
  // stay lose nothing: where a message is lost, so is its connection.
  void LoseConnections();
  std::string ToString() const;
};

}  // namespace baton::sim
