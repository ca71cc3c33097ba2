// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/debug_info.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rpc/agent_core.h"
#include "rpc/introspection.h"
#include "rpc/shown_name.h"

namespace baton::rpc {

std::string DebugInfo::ToString() const {
  std::string text = absl::StrCat(
      "worker ", self.name, " (rank ", static_cast<int>(self.rank), ", ",
      self.address, ", ", self.compute.ToString(), "): ", idle_threads, " of ",
      worker_threads, " threads idle, ", calls_served, " calls served, ",
      user_handles, " handles, ", transfers, " transfers\n");
  for (const PeerInfo& peer : peers) {
    absl::StrAppend(&text, "  peer ", peer.worker.name, " ", peer.state, "\n");
  }
  for (const ObjectInfo& object : objects) {
    absl::StrAppend(
        &text, "  object ", object.id, " ", object.type, " ", object.state,
        ", ", object.local_handles, " local handles, held by [",
        absl::StrJoin(object.holders, ", "), "], ", object.age_ms,
        " ms old, made by ", object.made_by, " at ", object.made_at);
    if (!object.used_by.empty()) {
      absl::StrAppend(&text, ", used by ", absl::StrJoin(object.used_by, ", "));
    }
    if (!object.waited_for_by.empty()) {
      absl::StrAppend(&text, ", waited for by ",
                      absl::StrJoin(object.waited_for_by, ", "));
    }
    absl::StrAppend(&text, "\n");
  }
  for (const CallInfo& call : outgoing) {
    absl::StrAppend(&text, "  call to ", call.peer, ": ", call.method, ", ",
                    call.age_ms, " ms\n");
  }
  for (const CallInfo& call : incoming) {
    absl::StrAppend(&text, "  call from ", call.peer, ": ", call.method, ", ",
                    call.age_ms, " ms\n");
  }
  return text;
}

namespace internal {

void AgentCore::AddView(const std::string& name, std::function<View()> view) {
  MutexLock lock(mutex_);
  views_[name] = std::move(view);
}

DebugInfo AgentCore::GetDebugInfo() const {
  DebugInfo info;
  info.self = self();
  info.objects = ownership_->Objects();
  const Ownership::Counts counts = ownership_->counts();
  info.user_handles = counts.grants;
  info.transfers = counts.transfers;
  info.calls_served = calls_served_;
  info.worker_threads = workers_->threads();
  info.idle_threads = workers_->idle_threads();
  const auto now = Clock::now();
  const auto age = [&](Clock::time_point since) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(now - since)
        .count();
  };
  info.uptime_ms = age(begun_);
  info.channels = transport_->Channels();
  info.tensor_channels = transport_->TensorChannels();
  std::vector<WorkerInfo> workers;
  std::map<std::string, std::function<View()>> views;
  {
    MutexLock lock(mutex_);
    views = views_;
    info.peers = peers_.Infos();
    info.methods = peers_.Methods();
    workers = peers_.All();
  }
  // Leave observers out of what they see.
  for (const WorkerInfo& peer : workers) {
    if (peer.rank != kObserverRank) continue;
    std::erase_if(info.peers, [&](const PeerInfo& entry) {
      return entry.worker.name == peer.name;
    });
    const auto is_theirs = [&](const auto& channel) {
      return channel.peer == peer.name;
    };
    std::erase_if(info.channels, is_theirs);
    std::erase_if(info.tensor_channels, is_theirs);
  }
  for (const auto& [name, view] : views) {
    info.views.push_back(view());
    info.views.back().name = name;
  }
  MutexLock lock(mutex_);
  for (const auto& [due, call] : outgoing_) {
    info.outgoing.push_back(
        {call->to.name, ShownName(call->spec.name), age(call->started)});
  }
  for (const auto& [due, call] : incoming_) {
    if (call->from.rank == kObserverRank) continue;
    info.incoming.push_back({call->from.name, call->name, age(call->started)});
  }
  return info;
}

}  // namespace internal
}  // namespace baton::rpc
