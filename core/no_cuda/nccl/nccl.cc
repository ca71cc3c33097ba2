// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/nccl_group.h"

namespace baton::cuda {
namespace {

absl::Status Absent() {
  return absl::FailedPreconditionError("built without NCCL");
}

}  // namespace

absl::StatusOr<std::string> NcclVersion() { return Absent(); }
absl::StatusOr<std::string> NewNcclId() { return Absent(); }
Future<std::shared_ptr<NcclGroup>> JoinNcclGroup(const std::string&, int, int,
                                                 int) {
  return ReadyFuture<std::shared_ptr<NcclGroup>>(Absent());
}

}  // namespace baton::cuda
