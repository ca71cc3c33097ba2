// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/sim/transport.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::sim {
namespace {

using rpc::MessageHandler;
using rpc::WorkerInfo;
using std::chrono::milliseconds;

// The longest time before the kernel takes what a process has written.
constexpr int64_t kSoon = 50'000;
// No worker has a reason to send another one this many messages in that time.
constexpr int kFlood = 10'000;
constexpr Nanos kFloodTime = std::chrono::seconds(1);

}  // namespace

std::string Exchange::Add(SimTransport* transport, int machine) {
  std::string address = absl::StrCat("sim:", machine, ":", ++addresses_);
  by_address_[address] = transport;
  return address;
}

SimTransport* Exchange::Find(const std::string& address) const {
  const auto found = by_address_.find(address);
  return found == by_address_.end() ? nullptr : found->second;
}

void Exchange::Remove(const std::string& address) {
  by_address_.erase(address);
}

void Exchange::OnKilled(int group, bool silently) {
  for (auto it = by_address_.begin(); it != by_address_.end();) {
    SimTransport& dead = *it->second;
    if (dead.group() != group) {
      ++it;
      continue;
    }
    for (auto& [name, peer] : dead.peers_) {
      if (peer.state != SimTransport::State::kIdle && !silently) {
        dead.Reset(peer.info.address, peer.connection);
      }
    }
    it = by_address_.erase(it);
  }
}

void Exchange::Sever(int a, int b) {
  for (auto& [address, transport] : by_address_) {
    if (transport->machine() != a && transport->machine() != b) continue;
    for (auto& [name, peer] : transport->peers_) {
      const SimTransport* other = Find(peer.info.address);
      if (other == nullptr || other == transport) continue;
      if (other->machine() != a && other->machine() != b) continue;
      World::Get().After(
          transport->group(), Nanos(0),
          [transport = transport, name = name, number = peer.connection] {
            transport->OnReset(name, number);
          });
    }
  }
}

SimTransport::SimTransport(Exchange& exchange, int machine, milliseconds lease)
    : exchange_(exchange),
      machine_(machine),
      group_(World::Get().group()),
      lease_(lease),
      address_(exchange.Add(this, machine)) {
  World::Get().Start(group_, [this] { RunCalls(); });
}

SimTransport::~SimTransport() {
  Shutdown(milliseconds(0));
  World& world = World::Get();
  ending_ = true;
  world.Wake(&calls_, true);
  while (!ended_) world.WaitFor(&ended_, Nanos(-1));
}

void SimTransport::RunCalls() {
  World& world = World::Get();
  for (;;) {
    if (calls_.empty()) {
      if (ending_) break;
      world.WaitFor(&calls_, Nanos(-1));
      continue;
    }
    Call call = std::move(calls_.front());
    calls_.pop_front();
    call();
  }
  ended_ = true;
  world.Wake(&ended_, true);
}

void SimTransport::Post(Call call) {
  calls_.push_back(std::move(call));
  World::Get().Wake(&calls_, true);
}

absl::Status SimTransport::Start(const WorkerInfo& self,
                                 MessageHandler* handler) {
  self_ = self;
  handler_ = handler;
  return absl::OkStatus();
}

void SimTransport::AddPeer(const WorkerInfo& peer) {
  past_[peer.name].erase(peer.incarnation);
  const auto found = peers_.find(peer.name);
  if (found == peers_.end()) {
    peers_[peer.name].info = peer;
  } else if (!(found->second.info == peer)) {
    Replace(found->second, peer);
  }
}

void SimTransport::Replace(Peer& peer, const WorkerInfo& by) {
  if (peer.info.incarnation != by.incarnation) {
    Break(peer, absl::UnavailableError("replaced by a new incarnation"), true);
    past_[peer.info.name].insert(peer.info.incarnation);
  }
  peer.info = by;
}

void SimTransport::RemovePeer(const std::string& name) {
  const auto found = peers_.find(name);
  if (found == peers_.end()) return;
  if (found->second.state == State::kUp) {
    Reset(found->second.info.address, found->second.connection);
  }
  Break(found->second, absl::UnavailableError("removed"), false);
  peers_.erase(found);
}

void SimTransport::Forget(const WorkerInfo& peer) {
  const auto found = peers_.find(peer.name);
  if (found == peers_.end() || found->second.state == State::kUp ||
      found->second.info.incarnation != peer.incarnation) {
    return;
  }
  Break(found->second, absl::UnavailableError("forgotten"), false);
  past_[peer.name].insert(peer.incarnation);
  peers_.erase(found);
}

void SimTransport::Disconnect(const std::string& name, Task then) {
  const auto found = peers_.find(name);
  if (found != peers_.end() && found->second.state == State::kUp) {
    Reset(found->second.info.address, found->second.connection);
    Break(found->second, absl::UnavailableError("severed"), true);
  }
  if (then != nullptr) Post(std::move(then));
}

void SimTransport::Send(const std::string& name, rpc::Message message,
                        Sent sent) {
  absl::Status status;
  const auto found = peers_.find(name);
  if (handler_ == nullptr) {
    status = absl::FailedPreconditionError("Send before Start");
  } else if (shut_) {
    status = absl::UnavailableError("the transport is shut down");
  } else if (name == self_.name) {
    status = absl::InvalidArgumentError("a worker sends to itself");
  } else if (found == peers_.end()) {
    status = absl::NotFoundError(absl::StrCat("no worker ", name));
  }
  if (!status.ok()) {
    Post([sent = std::move(sent), status]() mutable { sent(status); });
    return;
  }
  Peer& peer = found->second;
  Count(peer);
  peer.outbox.push_back({std::move(message), std::move(sent)});
  if (peer.state == State::kIdle) Dial(peer);
  if (peer.state == State::kUp) LeaveSoon(peer);
}

void SimTransport::Count(Peer& peer) {
  World& world = World::Get();
  if (world.now() > peer.counted_from + kFloodTime) {
    peer.counted_from = world.now();
    peer.counted = 0;
  }
  if (++peer.counted <= kFlood) return;
  world.Fail(absl::StrCat("worker ", self_.name, " has sent worker ",
                          peer.info.name, " ", kFlood,
                          " messages within a second"));
}

void SimTransport::Shutdown(milliseconds) {
  if (shut_) return;
  shut_ = true;
  for (auto& [name, peer] : peers_) {
    if (peer.state == State::kUp) {
      Leave(peer);
      Reset(peer.info.address, peer.connection);
    }
    Break(peer, absl::UnavailableError("shut down"), false);
  }
  exchange_.Remove(address_);
  handler_ = nullptr;
  bool done = false;
  Post([&done] {
    done = true;
    World::Get().Wake(&done, true);
  });
  while (!done) World::Get().WaitFor(&done, Nanos(-1));
}

void SimTransport::Break(Peer& peer, const absl::Status& why, bool tell) {
  if (peer.state == State::kUp && tell) {
    Post([this, info = peer.info, why] {
      if (handler_ != nullptr) handler_->OnPeerLost(info, why);
    });
  }
  peer.state = State::kIdle;
  peer.connection = 0;
  for (Outgoing& outgoing : peer.outbox) {
    Post([outgoing = std::move(outgoing), why]() mutable {
      outgoing.sent(absl::UnavailableError(why.message()));
    });
  }
  peer.outbox.clear();
}

void SimTransport::LeaveSoon(Peer& peer) {
  World::Get().After(
      group_, Nanos(exchange_.network().random().Between(0, kSoon)),
      [this, name = peer.info.name, connection = peer.connection] {
        if (Peer* up = FindUp(name, connection)) Leave(*up);
      });
}

void SimTransport::Leave(Peer& peer) {
  Network& network = exchange_.network();
  for (Outgoing& outgoing : peer.outbox) {
    Post([sent = std::move(outgoing.sent)]() mutable {
      sent(absl::OkStatus());
    });
    peer.failure_detector.Spoke();
    const auto message =
        std::make_shared<const rpc::Message>(std::move(outgoing.message));
    const bool lost = network.LosesOne();
    if (lost && network.resets()) Tear(peer);
    if (!lost && !peer.torn) Carry(peer.info.address, message, peer.connection);
    if (network.DoublesOne() && !peer.torn)
      Carry(peer.info.address, message, peer.connection);
  }
  peer.outbox.clear();
}

// While a way is clogged, large messages wait in the sender's process and are
// lost if it ends.
void SimTransport::Carry(const std::string& address,
                         const std::shared_ptr<const rpc::Message>& message,
                         uint64_t connection) {
  const auto tell = [this, address, message, connection] {
    Tell(address, false,
         [name = self_.name, from = address_, connection, message](
             SimTransport& to) { to.OnData(name, from, connection, message); });
  };
  const SimTransport* const to = exchange_.Find(address);
  if (to == nullptr) return;
  const Nanos clogged = message->tensors.empty() ? Nanos(0)
                                                 : exchange_.network().clogged(
                                                       machine_, to->machine());
  if (clogged == Nanos(0)) return tell();
  World::Get().After(group_, clogged, tell);
}

void SimTransport::OnData(const std::string& from, const std::string& address,
                          uint64_t connection,
                          const std::shared_ptr<const rpc::Message>& message) {
  Peer* const peer = FindUp(from, connection);
  if (peer == nullptr) {
    Reset(address, connection);
    return;
  }
  peer->failure_detector.Heard();
  Post([this, info = peer->info, message] {
    if (handler_ != nullptr) handler_->OnMessage(info, *message);
  });
}

SimTransport::Peer* SimTransport::FindUp(const std::string& name,
                                         uint64_t connection) {
  const auto found = peers_.find(name);
  if (found == peers_.end() || found->second.state != State::kUp ||
      found->second.connection != connection) {
    return nullptr;
  }
  return &found->second;
}

}  // namespace baton::sim
