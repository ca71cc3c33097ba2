// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/agent_checks.h"

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/lease.h"

namespace baton::rpc::internal {

absl::Status CheckAgent(const AgentOptions& options, const Registry& registry) {
  RETURN_IF_ERROR(Annotate(registry.status(), "the registry"));
  if (options.worker_threads < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker_threads (--rpc_threads) must be at least 1, not ",
                     options.worker_threads));
  }
  return CheckLease(options.lease);
}

}  // namespace baton::rpc::internal
