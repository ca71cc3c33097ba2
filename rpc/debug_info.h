// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "rpc/channels/channel_info.h"
#include "rpc/codec.h"
#include "rpc/view.h"
#include "rpc/worker.h"

// A snapshot of what a worker is doing, which can be sent and printed. Plain
// data.
namespace baton::rpc {

struct ObjectInfo {
  std::string id;
  std::string type;                  // "Stage"
  std::string state;                 // "pending", "ready" or "failed"
  std::vector<std::string> holders;  // workers with a handle; one may repeat
  int32_t local_handles = 0;
  int64_t age_ms = 0;
  int64_t bytes = -1;   // size when made; -1: unknown (rpc/held_bytes.h)
  std::string made_by;  // a worker's name
  std::string made_at;  // "trainer.cc:45", else the method that made it
  // Descriptions of calls: "Stage::Forward of worker alice (93 ms ago)".
  std::vector<std::string> used_by;
  std::vector<std::string> waited_for_by;  // in queue order
  static constexpr auto Fields = std::tuple{
      &ObjectInfo::id,      &ObjectInfo::type,          &ObjectInfo::state,
      &ObjectInfo::holders, &ObjectInfo::local_handles, &ObjectInfo::age_ms,
      &ObjectInfo::bytes,   &ObjectInfo::made_by,       &ObjectInfo::made_at,
      &ObjectInfo::used_by, &ObjectInfo::waited_for_by};
};

struct CallInfo {
  // The callee of an outgoing call, the caller of an incoming one.
  std::string peer;
  std::string method;
  int64_t age_ms = 0;
  static constexpr auto Fields =
      std::tuple{&CallInfo::peer, &CallInfo::method, &CallInfo::age_ms};
};

struct PeerInfo {
  WorkerInfo worker;
  std::string state;             // "new", "up", "lost" or "gone"
  uint64_t control_waiting = 0;  // ownership messages not acknowledged yet
  static constexpr auto Fields = std::tuple{&PeerInfo::worker, &PeerInfo::state,
                                            &PeerInfo::control_waiting};
};

// Statistics of the calls of one method between this worker and a peer since
// this worker started.
struct MethodStats {
  std::string peer;
  std::string method;
  bool incoming = false;  // the calls were served here; else made here
  uint64_t calls = 0;     // those that have ended
  uint64_t failed = 0;    // of these
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  // Sum of the times from begin to answer, as seen by this worker.
  uint64_t total_us = 0;
  std::vector<uint64_t> latency{};  // counts by bucket (rpc/histogram.h)
  static constexpr auto Fields =
      std::tuple{&MethodStats::peer,           &MethodStats::method,
                 &MethodStats::incoming,       &MethodStats::calls,
                 &MethodStats::failed,         &MethodStats::bytes_sent,
                 &MethodStats::bytes_received, &MethodStats::total_us,
                 &MethodStats::latency};
};

struct DebugInfo {
  WorkerInfo self;
  std::vector<PeerInfo> peers;
  std::vector<ObjectInfo> objects;  // owned here
  std::vector<CallInfo> outgoing;
  std::vector<CallInfo> incoming;
  uint64_t user_handles = 0;  // grants of objects owned elsewhere
  uint64_t transfers = 0;     // RRefs sent whose arrival is not known yet
  uint64_t calls_served = 0;
  int32_t worker_threads = 0;
  int32_t idle_threads = 0;
  int64_t uptime_ms = 0;
  std::vector<ChannelInfo> channels;
  std::vector<TensorChannelInfo> tensor_channels;
  std::vector<MethodStats> methods;
  std::vector<View> views;  // from the layers above
  static constexpr auto Fields = std::tuple{&DebugInfo::self,
                                            &DebugInfo::peers,
                                            &DebugInfo::objects,
                                            &DebugInfo::outgoing,
                                            &DebugInfo::incoming,
                                            &DebugInfo::user_handles,
                                            &DebugInfo::transfers,
                                            &DebugInfo::calls_served,
                                            &DebugInfo::worker_threads,
                                            &DebugInfo::idle_threads,
                                            &DebugInfo::uptime_ms,
                                            &DebugInfo::channels,
                                            &DebugInfo::tensor_channels,
                                            &DebugInfo::methods,
                                            &DebugInfo::views};

  // True if no call is under way and no object is owned here or held elsewhere.
  bool Idle() const {
    return objects.empty() && outgoing.empty() && incoming.empty() &&
           user_handles == 0 && transfers == 0;
  }
  std::string ToString() const;  // several lines, for display
};

}  // namespace baton::rpc
