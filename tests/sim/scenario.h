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

// A fault of a run.
struct Fault {
  enum class Kind {
    kKill,      // kills the process of machine a; its kernel tells its peers
    kPowerOff,  // the same, but nobody is told
    kStop,      // stops the process of machine a for `length`
    kClose,     // holds back packets from a to b for `length`
    kClog,      // the same, only for large messages
    kIsolate,   // closes the ways between machine a and all others
    kSever,     // breaks the connection between a and b
    kLeave,     // the worker of machine a leaves in order
    kKillRendezvous,  // kills the rendezvous; a new one starts after `length`
    kStopRendezvous,  // stops the rendezvous for `length`
  } kind = Kind::kKill;
  Nanos at{0};
  int a = 0;
  int b = 0;
  // For faults that end a worker: the time until it is started again.
  Nanos length{0};

  std::string ToString() const;
};

// One run, which the seed determines.
struct Scenario {
  uint64_t seed = 0;
  int workers = 3;
  bool servers = false;  // parameter servers, which all workers use
  // The stages of a pipeline that the first worker trains; 0: there is none.
  int stages = 0;
  int64_t steps = 0;     // of the whole training
  int spares = 0;        // number of spares, which are the last workers
  bool journal = false;  // the trainers keep a journal
  bool standby = false;  // worker 1 trains if the first one is lost
  std::chrono::milliseconds lease{1000};
  std::chrono::milliseconds resend_after{200};
  Nanos pause{0};     // between two calls of a worker
  Nanos duration{0};  // of the phase with calls and faults
  WorldOptions world;
  NetworkOptions network;
  DiskOptions disk;
  std::string folder;         // for files; removed after the run
  std::vector<Fault> faults;  // by time

  static Scenario Of(uint64_t seed, bool pipelines = false);
  std::string NameOf(int machine) const;
  void AddServers() {
    servers = true;
    LoseConnections();
  }
  // Makes every lost message break its connection. Calls without a timeout need
  // this, because a real connection loses no message while it lasts.
  void LoseConnections();
  std::string ToString() const;
};

}  // namespace baton::sim
