// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "tests/rpc/model/rref_model_node.h"

// What a worker of the model does with what arrives, as AgentCore does it.
namespace baton::rpc::internal {
namespace {

constexpr std::chrono::milliseconds kProbeReply{300};

}  // namespace

void RRefModel::Deliver(const Message& message) {
  Node& node = *nodes_[message.to];
  if (node.dead) return;
  const WorkerInfo& from = nodes_[message.from]->info;
  if (message.kind == Kind::kLoss) {
    const Peers::Loss loss = node.peers.MarkLost(from);
    if (loss.number != 0) {
      node.peers.Push(*loss.peer, {ControlKind::kPing, {}, {}}, nullptr);
    }
    return;
  }
  // What a dead worker has said before may still come, until it is given up.
  Peers::Said said{.epoch = message.epoch};
  if (message.kind == Kind::kCreate || message.kind == Kind::kShare)
    said.request = message.call;
  const Peers::Observed heard = node.peers.Observe(from, said);
  if (heard.stale() || heard.again) return;
  if (heard.spoken == Peers::Spoken::kLater) EndAllWith(node, message.from);
  const bool earlier = heard.spoken == Peers::Spoken::kEarlier;
  switch (message.kind) {
    case Kind::kCreate:
    case Kind::kShare:
      if (earlier) {
        Reply(node, message, GivenUp());
      } else {
        OnRequest(node, message);
      }
      break;
    case Kind::kReply:
      if (!earlier) OnReply(node, message);
      break;
    case Kind::kControl: {
      if (earlier) break;
      const auto received = node.peers.Receive(*heard.peer, message.control);
      for (const auto& acked : received.acked) {
        if (acked) acked();
      }
      for (const ControlItem& item : received.items) {
        node.table->OnControl(from, item);
      }
      break;
    }
    case Kind::kLoss:
      break;
  }
}

void RRefModel::OnRequest(Node& node, const Message& message) {
  const WorkerInfo& from = nodes_[message.from]->info;
  if (message.kind == Kind::kCreate) {
    const absl::Status begun =
        node.table->BeginCreation(message.id, message.fork, from, "Thing");
    if (!begun.ok()) {
      Reply(node, message, begun);
      return;
    }
    node.SendControl(from, {ControlKind::kCreated, message.id, message.fork},
                     nullptr);
    node.creations.push_back({message, from});
    return;
  }
  auto handles = node.table->Import(from, message.transfers);
  if (handles.ok()) {
    node.arriving.insert(node.arriving.end(), handles->begin(), handles->end());
  }
  Reply(node, message, handles.status());
}

// Now and then with a handle of its own.
void RRefModel::Reply(Node& node, const Message& request,
                      const absl::Status& status) {
  const WorkerInfo& to = nodes_[request.from]->info;
  const PeerPtr peer = node.peers.Current(to);
  Message reply{Kind::kReply, node.index, request.from,
                peer == nullptr ? 0 : node.peers.Epoch(*peer), request.call};
  reply.status = status;
  if (status.ok() && request.kind == Kind::kShare && !node.held.empty() &&
      Pick(2) == 0) {
    const HandlePtr& handle =
        node.held[Pick(static_cast<int>(node.held.size()))];
    if (handle->state() == Handle::State::kConfirmed) {
      auto transfers = node.table->Export({handle}, to, now_ + kProbeReply);
      if (transfers.ok()) reply.transfers = *std::move(transfers);
    }
  }
  network_.push_back(std::move(reply));
}

// What travelled with it is taken even if nobody waits any more.
void RRefModel::OnReply(Node& node, const Message& message) {
  auto handles =
      node.table->Import(nodes_[message.from]->info, message.transfers);
  const uint64_t key = message.call * kNodes + message.from;
  if (!node.calls.contains(key)) return;
  if (handles.ok()) {
    node.arriving.insert(node.arriving.end(), handles->begin(), handles->end());
  }
  EndCall(node, key, message.status);
}

// User code gets a handle once it is confirmed.
void RRefModel::TakeArrivals(Node& node) {
  std::vector<HandlePtr> arriving = std::move(node.arriving);
  node.arriving.clear();
  for (HandlePtr& handle : arriving) {
    switch (handle->state()) {
      case Handle::State::kUnknown:
        node.arriving.push_back(std::move(handle));
        break;
      case Handle::State::kConfirmed:
        node.held.push_back(std::move(handle));
        break;
      case Handle::State::kFailed:
        break;
    }
  }
}

}  // namespace baton::rpc::internal
