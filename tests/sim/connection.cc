// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/sim/transport.h"

// Makes and breaks connections.
namespace baton::sim {
namespace {

using std::chrono::milliseconds;

constexpr Nanos kAttempt = milliseconds(200);
constexpr Nanos kRetry = milliseconds(50);

std::chrono::steady_clock::time_point SteadyNow() {
  return std::chrono::steady_clock::now();
}

}  // namespace

void SimTransport::Tell(const std::string& address, bool ordered,
                        Arrive arrive) {
  const SimTransport* const to = exchange_.Find(address);
  if (to == nullptr) return;
  exchange_.network().Carry(
      machine_, to->machine(), to->group(), ordered,
      [exchange = &exchange_, address, arrive = std::move(arrive)] {
        if (SimTransport* there = exchange->Find(address)) arrive(*there);
      });
}

void SimTransport::Reset(const std::string& address, uint64_t connection) {
  Tell(address, true, [name = self_.name, connection](SimTransport& to) {
    to.OnReset(name, connection);
  });
}

// If the peer's process has ended, its machine refuses the connection.
void SimTransport::TryToDial(Peer& peer) {
  peer.connection = exchange_.NewConnection();
  const std::string name = peer.info.name;
  const uint64_t connection = peer.connection;
  if (exchange_.Find(peer.info.address) == nullptr) {
    exchange_.network().Carry(
        machine_, machine_, group_, false, [this, name, connection] {
          DialFailed(name, connection, "connection refused", false);
        });
    return;
  }
  Tell(peer.info.address, true,
       [hello = Hello{connection, self_, peer.info, lease_}](SimTransport& to) {
         to.OnHello(hello);
       });
  World::Get().After(group_, kAttempt, [this, name, connection] {
    DialFailed(name, connection, "no answer", true);
  });
}

void SimTransport::Dial(Peer& peer) {
  peer.state = State::kDialing;
  peer.dial_until = World::Get().now() + Nanos(lease_);
  TryToDial(peer);
}

void SimTransport::DialFailed(const std::string& name, uint64_t connection,
                              const std::string& why, bool at_once) {
  const auto found = peers_.find(name);
  if (found == peers_.end()) return;
  Peer& peer = found->second;
  if (peer.state != State::kDialing || peer.connection != connection) return;
  World& world = World::Get();
  if (world.now() + kRetry >= peer.dial_until) {
    Break(peer,
          absl::UnavailableError(
              absl::StrCat("cannot reach worker ", name, ": ", why)),
          false);
    return;
  }
  world.After(group_, at_once ? Nanos(0) : kRetry, [this, name, connection] {
    const auto again = peers_.find(name);
    if (again == peers_.end()) return;
    Peer& still = again->second;
    if (still.state == State::kDialing && still.connection == connection) {
      TryToDial(still);
    }
  });
}

void SimTransport::OnHello(const Hello& hello) {
  const bool me = handler_ != nullptr && !shut_ &&
                  hello.to.incarnation == self_.incarnation;
  const auto found = peers_.find(hello.from.name);
  const bool past = found != peers_.end() &&
                    found->second.info.incarnation != hello.from.incarnation &&
                    past_[hello.from.name].contains(hello.from.incarnation);
  if (!me || past) {
    Reset(hello.from.address, hello.connection);
    return;
  }
  Peer& peer = peers_[hello.from.name];
  if (found == peers_.end()) peer.info = hello.from;
  if (!(peer.info == hello.from)) Replace(peer, hello.from);
  // If both dial, the connection that the lower name dialled is kept.
  if (peer.state == State::kDialing && self_.name < hello.from.name) return;
  if (peer.state == State::kUp) {
    Break(peer, absl::UnavailableError("the peer has connected again"), true);
  }
  BecomeUp(peer, hello.connection, hello.lease);
  Tell(peer.info.address, true,
       [answer = Hello{hello.connection, self_, peer.info, lease_}](
           SimTransport& to) { to.OnAnswer(answer); });
  LeaveSoon(peer);
}

void SimTransport::OnAnswer(const Hello& answer) {
  const auto found = peers_.find(answer.from.name);
  if (found == peers_.end() || found->second.state != State::kDialing ||
      found->second.connection != answer.connection) {
    Reset(answer.from.address, answer.connection);
    return;
  }
  BecomeUp(found->second, answer.connection, answer.lease);
  LeaveSoon(found->second);
}

void SimTransport::BecomeUp(Peer& peer, uint64_t connection,
                            milliseconds lease) {
  peer.state = State::kUp;
  peer.torn = false;
  peer.connection = connection;
  peer.failure_detector = rpc::FailureDetector(lease_, lease, SteadyNow());
  AwaitBeat(peer);
}

void SimTransport::Tear(Peer& peer) {
  if (std::exchange(peer.torn, true)) return;
  World::Get().After(
      group_,
      Nanos(exchange_.network().random().Between(0, Nanos(lease_).count() / 2)),
      [this, name = peer.info.name, connection = peer.connection] {
        if (FindUp(name, connection) != nullptr) Disconnect(name, nullptr);
      });
}

void SimTransport::AwaitBeat(Peer& peer) {
  const auto now = SteadyNow();
  const auto next =
      peer.failure_detector.Next(now, static_cast<uint64_t>(machine_) << 20);
  World::Get().After(
      group_, next - now,
      [this, name = peer.info.name, connection = peer.connection] {
        Beat(name, connection);
      });
}

void SimTransport::Beat(const std::string& name, uint64_t connection) {
  Peer* const peer = FindUp(name, connection);
  if (peer == nullptr) return;
  const rpc::FailureDetector::Due due =
      peer->failure_detector.Beat(SteadyNow());
  if (due.silent) {
    Reset(peer->info.address, connection);
    Break(*peer,
          absl::DeadlineExceededError(absl::StrCat(
              "worker ", name, " was silent for ", lease_.count(), " ms")),
          true);
    return;
  }
  if (due.speak && !peer->torn) {
    Tell(peer->info.address, false,
         [from = self_.name, connection](SimTransport& to) {
           to.OnBeat(from, connection);
         });
  }
  AwaitBeat(*peer);
}

void SimTransport::OnBeat(const std::string& from, uint64_t connection) {
  if (Peer* const peer = FindUp(from, connection))
    peer->failure_detector.Heard();
}

void SimTransport::OnReset(const std::string& from, uint64_t connection) {
  const auto found = peers_.find(from);
  if (found == peers_.end() || found->second.connection != connection) return;
  if (found->second.state == State::kDialing) {
    DialFailed(from, connection, "refused", false);
  } else if (found->second.state == State::kUp) {
    Break(found->second,
          absl::UnavailableError(
              absl::StrCat("lost the connection to worker ", from)),
          true);
  }
}

}  // namespace baton::sim
