// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/model/rref_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/methods.h"
#include "tests/rpc/model/rref_model_node.h"

namespace baton::rpc::internal {
namespace {

using std::chrono::milliseconds;

constexpr int kSteps = 120;
constexpr int kMostHeld = 4;
constexpr int kSettleRounds = 200;
constexpr milliseconds kProbeCall{20};
constexpr milliseconds kAskAgain{50};
// Every look at a channel may send again: the schedule says when that is.
constexpr milliseconds kResend{0};

}  // namespace

RRefModel::RRefModel(uint64_t seed) : random_(seed) {
  for (int i = 0; i < kNodes; ++i) {
    nodes_.push_back(std::make_shared<Node>(i));
    nodes_[i]->table = std::make_shared<Ownership>(
        nodes_[i]->info, std::weak_ptr<AgentCore>(), nodes_[i]);
  }
  for (auto& node : nodes_) {
    for (auto& other : nodes_) {
      if (other != node) node->peers.Add(other->info);
    }
  }
  may_fail_ = Pick(2) == 0 ? 0 : 1 + Pick(2);
}

// Handles look for their table, and tables for their node.
RRefModel::~RRefModel() {
  network_.clear();
  for (auto& node : nodes_) {
    node->calls.clear();
    node->held.clear();
    node->arriving.clear();
  }
}

int RRefModel::Other(const Node& node) {
  return (node.index + 1 + Pick(kNodes - 1)) % kNodes;
}

void RRefModel::Create(Node& node) {
  if (node.held.size() >= kMostHeld) return;
  Node& owner = *nodes_[Other(node)];
  const PeerPtr peer = node.peers.Current(owner.info);
  if (peer == nullptr) return;
  HandlePtr handle = node.table->NewGrant(owner.info, 1);
  const auto [epoch, call] = *node.peers.NextCall(*peer);
  const uint64_t key = call * kNodes + owner.index;
  node.calls[key] = {owner.index, handle};
  node.held.push_back(handle);
  network_.push_back({Kind::kCreate, node.index, owner.index, epoch, call,
                      handle->id(), handle->fork()});
}

void RRefModel::Share(Node& node) {
  if (node.held.empty()) return;
  const HandlePtr& handle = node.held[Pick(static_cast<int>(node.held.size()))];
  if (handle->state() != Handle::State::kConfirmed) return;
  Node& to = *nodes_[Other(node)];
  const PeerPtr peer = node.peers.Current(to.info);
  if (peer == nullptr) return;
  const auto [epoch, call] = *node.peers.NextCall(*peer);
  auto transfers = node.table->Export({handle}, to.info,
                                      Ownership::Clock::time_point::max());
  if (!transfers.ok()) return;
  node.calls[call * kNodes + to.index] = {
      to.index, nullptr, {transfers->front().fork}};
  network_.push_back({Kind::kShare,
                      node.index,
                      to.index,
                      epoch,
                      call,
                      {},
                      {},
                      *std::move(transfers)});
}

void RRefModel::Drop(Node& node) {
  if (node.held.empty()) return;
  const int i = Pick(static_cast<int>(node.held.size()));
  HandlePtr dropped = std::move(node.held[i]);
  node.held.erase(node.held.begin() + i);
}

void RRefModel::FinishCreation(Node& node) {
  if (node.creations.empty()) return;
  const int i = Pick(static_cast<int>(node.creations.size()));
  const Node::Creation done = std::move(node.creations[i]);
  node.creations.erase(node.creations.begin() + i);
  absl::StatusOr<AnyValue> value = absl::InternalError("cannot be made");
  if (Pick(5) != 0) {
    auto made = std::make_shared<int>(1);
    node.values.push_back(made);
    value = AnyValue{std::move(made)};
  }
  node.table->FinishCreation(done.request.id, value);
  Reply(node, done.request, value.status());
}

void RRefModel::TimeOut(Node& node) {
  if (node.calls.empty()) return;
  auto call = node.calls.begin();
  std::advance(call, Pick(static_cast<int>(node.calls.size())));
  EndCall(node, call->first, absl::DeadlineExceededError("no answer"));
}

void RRefModel::EndCall(Node& node, uint64_t number,
                        const absl::Status& status) {
  auto found = node.calls.extract(number);
  if (found.empty()) return;
  Node::Call& call = found.mapped();
  if (!call.forks.empty()) {
    node.table->ProbeFrom(call.forks, now_ + kProbeCall);
  }
  if (call.created == nullptr) return;
  if (status.ok()) {
    node.table->ConfirmGrant(call.created);
  } else {
    node.table->FailGrant(call.created, status);
  }
}

void RRefModel::Flush(Node& from, int to) {
  const PeerPtr peer = from.peers.Current(nodes_[to]->info);
  if (peer == nullptr) return;
  while (auto frame = from.peers.Take(*peer, kResend)) {
    Message message{Kind::kControl, from.index, to, frame->epoch};
    const bool has_items = !frame->items.empty();
    message.control = *std::move(frame);
    network_.push_back(std::move(message));
    if (has_items) return;  // what is unanswered is always due again
  }
}

void RRefModel::DeliverOne() {
  if (network_.empty()) return;
  const int i = Pick(static_cast<int>(network_.size()));
  const Message message = std::move(network_[i]);
  network_.erase(network_.begin() + i);
  Deliver(message);
}

void RRefModel::LoseOne() {
  if (network_.empty()) return;
  const int i = Pick(static_cast<int>(network_.size()));
  if (network_[i].kind != Kind::kLoss) network_.erase(network_.begin() + i);
}

void RRefModel::DoubleOne() {
  if (network_.empty()) return;
  const Message copy = network_[Pick(static_cast<int>(network_.size()))];
  if (copy.kind != Kind::kLoss) network_.push_back(copy);
}

void RRefModel::GiveUp(Node& node, int other) {
  const WorkerInfo& info = nodes_[other]->info;
  const Peers::Loss loss = node.peers.MarkLost(info);
  if (loss.number == 0 || !node.peers.GiveUp(loss, GivenUp())) return;
  failed_ = true;
  // The rendezvous may do the same; what it had said before is remembered.
  if (Pick(2) == 0) node.peers.StrikeOff(info, GivenUp());
  EndAllWith(node, other);
  if (nodes_[other]->dead) return;
  // The other one hears that the connection broke.
  network_.push_back({Kind::kLoss, node.index, other});
}

void RRefModel::Kill(Node& node) {
  node.dead = true;
  node.calls.clear();
  node.creations.clear();
  failed_ = true;
}

void RRefModel::EndAllWith(Node& node, int other) {
  std::vector<uint64_t> ended;
  for (const auto& [number, call] : node.calls) {
    if (call.to == other) ended.push_back(number);
  }
  for (uint64_t number : ended) EndCall(node, number, GivenUp());
  node.table->OnWorkerGone(nodes_[other]->info, GivenUp());
}

void RRefModel::PassTime() {
  now_ += milliseconds(1 + Pick(30));
  for (auto& node : nodes_) {
    if (!node->dead) node->table->Tick(now_, kAskAgain);
  }
}

void RRefModel::Step() {
  Node& node = *nodes_[Pick(kNodes)];
  const int what = Pick(40);
  if (what >= 24) {
    DeliverOne();
  } else if (what >= 22) {
    LoseOne();
  } else if (what == 21) {
    DoubleOne();
  } else if (what == 20) {
    PassTime();
  } else if (!node.dead) {
    if (what < 3)
      Create(node);
    else if (what < 7)
      Share(node);
    else if (what < 10)
      Drop(node);
    else if (what < 12)
      FinishCreation(node);
    else if (what == 12)
      TimeOut(node);
    else if (what < 19)
      Flush(node, Other(node));
    else if (may_fail_ > 0 && Pick(4) == 0) {
      --may_fail_;
      if (Pick(2) == 0)
        Kill(node);
      else
        GiveUp(node, Other(node));
    }
  }
  for (auto& each : nodes_) {
    if (each->dead) continue;
    TakeArrivals(*each);
    each->discarded.clear();
  }
}

std::string RRefModel::Run() {
  for (int i = 0; i < kSteps; ++i, ++steps_) {
    Step();
    if (failed_) continue;
    if (std::string wrong = CheckHandles(); !wrong.empty()) return wrong;
  }
  Settle();
  return CheckTables();
}

// The network is whole again, the users drop all, the dead are given up.
void RRefModel::Settle() {
  // A transport tells a loss behind all that came, and nothing comes after it.
  std::erase_if(network_, [this](const Message& message) {
    return nodes_[message.from]->dead;
  });
  for (int round = 0; round < kSettleRounds && !Settled(); ++round) {
    // Again, as a handle of its objects is a reason to try a worker anew.
    for (auto& node : nodes_) {
      for (auto& other : nodes_) {
        if (!node->dead && other->dead) GiveUp(*node, other->index);
      }
    }
    for (auto& node : nodes_) {
      if (node->dead) continue;
      while (!node->creations.empty()) FinishCreation(*node);
      while (!node->calls.empty()) TimeOut(*node);
      TakeArrivals(*node);
      node->held.clear();
      node->discarded.clear();
      for (int other = 0; other < kNodes; ++other) {
        if (other != node->index) Flush(*node, other);
      }
    }
    std::vector<Message> arriving = std::move(network_);
    network_.clear();
    for (const Message& message : arriving) Deliver(message);
    PassTime();
  }
}

bool RRefModel::Settled() const {
  if (!network_.empty()) return false;
  return CheckTables().empty();
}

std::string RRefModel::CheckHandles() const {
  for (const auto& node : nodes_) {
    for (const HandlePtr& handle : node->held) {
      if (handle->state() != Handle::State::kConfirmed) continue;
      for (const auto& owner : nodes_) {
        if (owner->info.name != handle->owner().name) continue;
        if (absl::IsNotFound(owner->table->Peek(handle->id()).status())) {
          return absl::StrCat("step ", steps_, ": ", node->info.name,
                              " has a handle to ", handle->id().ToString(),
                              ", which ", owner->info.name, " has not");
        }
      }
    }
  }
  return "";
}

std::string RRefModel::CheckTables() const {
  for (const auto& node : nodes_) {
    if (node->dead) continue;
    const Ownership::Counts counts = node->table->counts();
    size_t values = 0;
    for (const auto& value : node->values) values += !value.expired();
    const bool busy = !node->calls.empty() || !node->creations.empty() ||
                      !node->held.empty() || !node->arriving.empty();
    if (counts.objects + counts.grants + counts.transfers + values > 0 ||
        busy) {
      return absl::StrCat(node->info.name, " is left with ", counts.objects,
                          " objects, ", counts.grants, " grants, ",
                          counts.transfers, " transfers, ", values, " values, ",
                          node->arriving.size(), " handles that arrive, ",
                          failed_ ? "after" : "without", " a give-up");
    }
  }
  return "";
}

}  // namespace baton::rpc::internal
