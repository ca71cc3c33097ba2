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

// What has happened in the whole world, and whether it may: fails the run at
// the step that breaks a promise (docs/design/simulator.md lists them). Takes
// no lock. Used by the thread that runs.
class Ledger {
 public:
  explicit Ledger(std::chrono::milliseconds lease) : lease_(lease) {}

  // Calls. One that is begun must end, unless its worker does.
  uint64_t Begin(int group, bool plain);
  void End(uint64_t call, const absl::Status& result);
  // Its handler runs, in that group; `from` is who asked.
  void Run(uint64_t call, int group, const rpc::WorkerInfo& from);

  // Objects: made at most once, at one place, and gone no sooner than all
  // handles to them.
  void Made(uint64_t object, int group);
  void Gone(uint64_t object);
  void Held(uint64_t object, int group, int handles);

  // Members.
  void Joined(int group, const rpc::WorkerInfo& self,
              const std::vector<rpc::WorkerInfo>& others);
  void Event(int group, const rpc::MemberEvent& event);
  // A worker begins to end; what it owns goes with it.
  void Leaving() { ++given_up_; }
  // That worker has ended: all who counted on it must hear of it.
  void Ended(int group);
  // Until then nobody is held to what it hears of others.
  void Disturb(Nanos length);

  // Of workers that are there.
  size_t calls_open() const;
  std::string OpenCalls() const;
  size_t objects_alive() const;
  std::vector<uint64_t> members() const;  // their incarnations
  uint64_t calls() const { return calls_.size(); }
  // How many workers have ended, or were given up by anybody, since then.
  size_t lost(Nanos since = Nanos(0)) const;
  bool IsLost(uint64_t incarnation, Nanos since = Nanos(0)) const;

 private:
  struct Call {
    int group = 0;
    bool plain = false;  // leaves at once
    Nanos begun{0};
    int runs = 0;
    bool ended = false;
    absl::Status result{};
    bool did_not_run = false;  // as its caller was told
  };
  struct Object {
    int group = 0;
    bool gone = false;
    std::map<int, int> handles{};  // by group
  };
  struct Member {
    rpc::WorkerInfo self;
    std::set<uint64_t> known;               // incarnations
    std::map<uint64_t, Nanos> given_up_at;  // that have not come back
    std::map<uint64_t, Nanos> last_given_up;
  };

  // When a worker ended, or until then was last given up: it may have come back
  // in between.
  struct Loss {
    Nanos at{0};
    bool ended = false;
  };

  // Whether its caller had given up who runs it now before it made the call.
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
