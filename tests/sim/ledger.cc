// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/sim/ledger.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "rpc/call_options.h"

namespace baton::sim {
namespace {

using std::chrono::milliseconds;

// From when the rendezvous checks the leases until a worker is told.
constexpr milliseconds kToTell{200};
// The time for a handler that already runs, or a thread that is late.
constexpr milliseconds kUnderWay{200};

}  // namespace

uint64_t Ledger::Begin(int group, bool plain) {
  const uint64_t number = ++last_call_;
  calls_[number] = {
      .group = group, .plain = plain, .begun = World::Get().now()};
  return number;
}

void Ledger::End(uint64_t number, const absl::Status& result) {
  World& world = World::Get();
  Call& call = calls_.at(number);
  if (call.ended) world.Fail(absl::StrCat("call ", number, " ended twice"));
  call.ended = true;
  call.result = result;
  const auto error = rpc::CallErrorOf(result);
  call.did_not_run = error.has_value() && error->retryable;
  world.Mix(number * 31 + static_cast<uint64_t>(result.code()));
  if (result.ok() && call.runs != 1) {
    world.Fail(absl::StrCat("call ", number, " was answered and ran ",
                            call.runs, " times"));
  }
  if (absl::IsNotFound(result) && given_up_ == 0) {
    world.Fail(absl::StrCat("call ", number,
                            " of an object that is held: ", result.ToString()));
  }
  if (call.did_not_run && call.runs > 0) {
    world.Fail(absl::StrCat(
        "call ", number,
        " ran and its caller was told that it did not: ", result.ToString()));
  }
}

void Ledger::Run(uint64_t number, int group, const rpc::WorkerInfo& from) {
  World& world = World::Get();
  Call& call = calls_.at(number);
  world.Mix(number);
  if (++call.runs > 1) {
    world.Fail(absl::StrCat("call ", number, " ran twice"));
  }
  if (call.did_not_run) {
    world.Fail(absl::StrCat("call ", number,
                            " runs, its caller was told that it did not"));
  }
  const Member& member = members_.at(group);
  const auto given_up = member.given_up_at.find(from.incarnation);
  if (!call.plain || given_up == member.given_up_at.end() ||
      IsOfNewEpoch(call, group)) {
    return;
  }
  if (call.begun < given_up->second &&
      world.now() > given_up->second + kUnderWay) {
    world.Fail(absl::StrCat("worker ", world.name(group), " runs call ", number,
                            " of worker ", from.name,
                            ", made before it had given that one up"));
  }
}

// Both workers have begun the next epoch on their own, and it is the same one.
bool Ledger::IsOfNewEpoch(const Call& call, int group) const {
  const auto& given_up = members_.at(call.group).last_given_up;
  const auto found = given_up.find(members_.at(group).self.incarnation);
  return found != given_up.end() && found->second <= call.begun;
}

void Ledger::Made(uint64_t object, int group) {
  const auto [place, added] = objects_.emplace(object, Object{.group = group});
  if (!added) {
    World::Get().Fail(absl::StrCat("object ", object, " was made twice"));
  }
}

void Ledger::Gone(uint64_t number) {
  World& world = World::Get();
  Object& object = objects_.at(number);
  object.gone = true;
  for (const auto& [group, handles] : object.handles) {
    if (handles == 0 || given_up_ > 0 || !world.alive(group)) continue;
    // Once a worker was given up, objects may go. Events say so only after the
    // tables are swept, so this looks again later.
    world.After(0, kUnderWay, [this, number, group = group] {
      if (given_up_ > 0) return;
      World::Get().Fail(absl::StrCat("object ", number, " is gone, and worker ",
                                     World::Get().name(group), " held it"));
    });
  }
}

void Ledger::Held(uint64_t object, int group, int handles) {
  const auto found = objects_.find(object);
  if (found == objects_.end()) return;
  found->second.handles[group] += handles;
}

void Ledger::Joined(int group, const rpc::WorkerInfo& self,
                    const std::vector<rpc::WorkerInfo>& others) {
  Member& member = members_[group];
  member.self = self;
  for (const rpc::WorkerInfo& other : others) {
    if (other.name != self.name) member.known.insert(other.incarnation);
  }
}

void Ledger::Event(int group, const rpc::MemberEvent& event) {
  using Kind = rpc::MemberEvent::Kind;
  World& world = World::Get();
  Member& member = members_.at(group);
  const uint64_t incarnation = event.worker.incarnation;
  world.Mix(incarnation + static_cast<uint64_t>(event.kind));
  static constexpr const char* kKinds[] = {"joined", "broken", "left", "lost"};
  if (world.tracing()) {
    world.Trace(absl::StrCat("hears that ", event.worker.name, " ", incarnation,
                             " ", kKinds[static_cast<int>(event.kind)], ": ",
                             event.cause.message()));
  }
  if (event.kind == Kind::kJoined) {
    member.known.insert(incarnation);
    member.given_up_at.erase(incarnation);
  } else if (event.kind != Kind::kBroken) {
    member.known.erase(incarnation);
    member.given_up_at.emplace(incarnation, world.now());
    member.last_given_up[incarnation] = world.now();
    Loss& loss = lost_[incarnation];
    if (!loss.ended) loss.at = world.now();
    if (event.kind == Kind::kLost) ++given_up_;
  }
}

void Ledger::Ended(int group) {
  World& world = World::Get();
  ++given_up_;
  const auto ended = members_.find(group);
  if (ended == members_.end()) return;
  const uint64_t incarnation = ended->second.self.incarnation;
  lost_[incarnation] = {.at = world.now(), .ended = true};
  for (const auto& [observer, member] : members_) {
    if (observer == group || !member.known.contains(incarnation)) continue;
    CheckNotified(incarnation, observer, world.now());
  }
}

// Checks again, one lease after the end of what disturbed the observer.
void Ledger::CheckNotified(uint64_t incarnation, int observer, Nanos ended) {
  World& world = World::Get();
  const Nanos limit = std::max(ended, calm_at_) + lease_ + kToTell +
                      (calm_at_ > ended ? Nanos(lease_) : Nanos(0));
  if (world.now() < limit) {
    world.After(0, limit - world.now(), [this, incarnation, observer, ended] {
      CheckNotified(incarnation, observer, ended);
    });
    return;
  }
  if (!world.alive(observer)) return;
  if (!members_.at(observer).known.contains(incarnation)) return;
  world.Fail(absl::StrCat("worker ", world.name(observer),
                          " has not heard of the end of worker ", incarnation,
                          " within the lease"));
}

void Ledger::Disturb(Nanos length) {
  calm_at_ = std::max(calm_at_, World::Get().now() + length);
}

size_t Ledger::lost(Nanos since) const {
  return static_cast<size_t>(std::count_if(
      lost_.begin(), lost_.end(),
      [since](const auto& entry) { return entry.second.at >= since; }));
}

bool Ledger::IsLost(uint64_t incarnation, Nanos since) const {
  const auto found = lost_.find(incarnation);
  return found != lost_.end() && found->second.at >= since;
}

size_t Ledger::calls_open() const {
  return static_cast<size_t>(
      std::count_if(calls_.begin(), calls_.end(), [](const auto& entry) {
        return !entry.second.ended && World::Get().alive(entry.second.group);
      }));
}

std::string Ledger::OpenCalls() const {
  std::string open;
  for (const auto& [number, call] : calls_) {
    if (call.ended || !World::Get().alive(call.group)) continue;
    absl::StrAppend(&open, " ", number, " of ", World::Get().name(call.group));
  }
  return open;
}

size_t Ledger::objects_alive() const {
  return static_cast<size_t>(
      std::count_if(objects_.begin(), objects_.end(), [](const auto& entry) {
        return !entry.second.gone && World::Get().alive(entry.second.group);
      }));
}

std::vector<uint64_t> Ledger::members() const {
  std::vector<uint64_t> members;
  for (const auto& [group, member] : members_) {
    if (World::Get().alive(group)) members.push_back(member.self.incarnation);
  }
  std::sort(members.begin(), members.end());
  return members;
}

}  // namespace baton::sim
