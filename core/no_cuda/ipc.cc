// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/ipc.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

std::string UuidOf(int) { FailWithoutCuda("ipc"); }
std::optional<PlaceInSegment> PlaceOf(const Tensor&) { FailWithoutCuda("ipc"); }
std::string ShareSegment(void*, int) { FailWithoutCuda("ipc"); }
void UnshareSegment(void*, int) { FailWithoutCuda("ipc"); }
std::shared_ptr<void> OpenSegment(const std::string&, int) {
  FailWithoutCuda("ipc");
}
std::shared_ptr<void> MakeSharedEvent(int) { FailWithoutCuda("ipc"); }
std::string HandleOfEvent(void*, int) { FailWithoutCuda("ipc"); }
void RecordSharedEvent(void*, const Stream&) { FailWithoutCuda("ipc"); }
std::shared_ptr<void> OpenSharedEvent(const std::string&, int) {
  FailWithoutCuda("ipc");
}
bool SharedEventHasEnded(void*, int) { FailWithoutCuda("ipc"); }
absl::AnyInvocable<bool()> CopyFromSegment(const Tensor&, const void*,
                                           const Stream&) {
  FailWithoutCuda("ipc");
}
void CopyToSegment(const Tensor&, const Tensor&, const Stream&) {
  FailWithoutCuda("ipc");
}

}  // namespace baton::cuda
