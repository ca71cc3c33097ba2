// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/arrivals.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

absl::AnyInvocable<bool()> WhenWritten(const Tensor&) {
  FailWithoutCuda("arrival");
}
std::shared_ptr<ArrivalLane> MakeArrivalLane(const Stream&) {
  FailWithoutCuda("arrival");
}

}  // namespace baton::cuda
