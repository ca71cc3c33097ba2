// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "rpc/worker.h"
#include "tests/sim/world.h"

namespace baton::sim {

// Records what happens in the simulated world, and fails the run at the step
// that breaks a promise (docs/design/simulator.md lists them). Takes no lock.
// Used by the running thread.
class Ledger {
 public:
  explicit Ledger(std::chrono::milliseconds lease) : lease_(lease) {}

  // Calls. A call that begins must end, unless its caller's process does.
  uint64_t Begin(int group, bool plain);
  void End(uint64_t call, const absl::Status& result);
  // The call's handler begins in that group; `from` is the caller.
  void Run(uint64_t call, int group, const rpc::WorkerInfo& from);

  // Objects. Each is made at most once, at one worker, and must not be
  // destroyed before all handles to it.
  void Made(uint64_t object, int group);
  void Gone(uint64_t object);
  void Held(uint64_t object, int group, int handles);

  // Members.
  void Joined(int group, const rpc::WorkerInfo& self,
              const std::vector<rpc::WorkerInfo>& others);
  void Event(int group, const rpc::MemberEvent& event);
  // A worker begins to leave; its objects go with it.
  void Leaving() { ++given_up_; }
  // The worker of that group has ended; all workers that knew it must hear of
  // it.
  void Ended(int group);
  // For this time, workers need not hear of others in time.
  void Disturb(Nanos length);

  // These count only workers that are alive.
  size_t calls_open() const;
  std::string OpenCalls() const;
  size_t objects_alive() const;
  std::vector<uint64_t> members() const;  // their incarnations
  uint64_t calls() const { return calls_.size(); }
  // Returns how many workers have ended, or were given up by another one, since
  // then.
  size_t lost(Nanos since = Nanos(0)) const;
  bool IsLost(uint64_t incarnation, Nanos since = Nanos(0)) const;

 private:
  struct Call {
    int group = 0;
    bool plain = false;  // its handler returns at once
    Nanos begun{0};
    int runs = 0;
    bool ended = false;
    absl::Status result{};
    bool did_not_run = false;  // its caller was told so
  };
  struct Object {
    int group = 0;
    bool gone = false;
    std::map<int, int> handles{};  // by group
  };
  struct Member {
    rpc::WorkerInfo self;
    std::set<uint64_t> known;               // incarnations
    std::map<uint64_t, Nanos> given_up_at;  // and have not come back
    std::map<uint64_t, Nanos> last_given_up;
  };

  // When a worker ended or, before that, was last given up; it may have come
  // back since.
  struct Loss {
    Nanos at{0};
    bool ended = false;
  };

  // Returns true if the caller had given up the worker that now runs the call
  // before it made the call.
  bool IsOfNewEpoch(const Call& call, int group) const;
  void CheckNotified(uint64_t incarnation, int observer, Nanos ended);

  const std::chrono::milliseconds lease_;
  std::map<uint64_t, Call> calls_;
  std::map<uint64_t, Object> objects_;
  std::map<int, Member> members_;  // by group
  uint64_t last_call_ = 0;
  uint64_t given_up_ = 0;
  std::map<uint64_t, Loss> lost_;  // by incarnation
  Nanos calm_at_{0};
};

}  // namespace baton::sim
