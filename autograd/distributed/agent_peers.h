// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "autograd/distributed/peers.h"
#include "rpc/agent.h"

namespace baton::dist {

// Implements Peers by calls of an agent, which must outlive this. Thread-safe.
class AgentPeers final : public Peers {
 public:
  explicit AgentPeers(rpc::Agent* agent) : agent_(agent) {}

  Future<Marking> Mark(const std::string& to,
                       const MarkRequest& request) override;
  Future<WantedPlaces> Want(const std::string& to,
                            const WantRequest& request) override;
  Future<void> Gradient(const std::string& to, const GradientMessage& message,
                        std::chrono::milliseconds timeout) override;
  Future<std::vector<Tensor>> Finish(const std::string& to,
                                     const FinishRequest& request) override;
  Future<std::string> Abort(const std::string& to, const ContextId& context,
                            PassId pass, const absl::Status& why,
                            std::chrono::milliseconds timeout) override;
  Future<void> MoveToGrad(const std::string& to, const ContextId& context,
                          uint64_t number) override;
  Future<void> Release(const std::string& to, const ContextId& context,
                       const std::string& why) override;
  Future<void> Join(const ContextId& context) override;

 private:
  rpc::Agent* const agent_;
};

}  // namespace baton::dist
