// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "rpc/agent.h"
#include "tools/daemon.h"

namespace baton::tools {

// Serves other workers until a signal comes or, if the worker `host` hosts the
// rendezvous (rpc::ClusterOptions), until that worker has ended: its end is the
// end of the run. `stop` must outlive the agent.
inline void Serve(rpc::Agent& agent, StopSignal& stop,
                  const std::string& host) {
  if (!host.empty()) {
    agent.WatchMembers([&stop, host](const rpc::MemberEvent& event) {
      using Kind = rpc::MemberEvent::Kind;
      const bool gone = event.kind == Kind::kLeft || event.kind == Kind::kLost;
      if (gone && event.worker.name == host) stop.End();
    });
    if (!agent.Find(host).ok()) stop.End();  // it has ended already
  }
  stop.Wait();
}

}  // namespace baton::tools
