// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/graph.h"

#include "core/no_cuda/absent.h"

namespace baton {

class Graph::Recording {};

Graph Graph::Record(const std::vector<Device>&, absl::FunctionRef<void()>) {
  cuda::FailWithoutCuda("graph");
}
uint64_t Graph::CurrentRecording() { return 0; }
void Graph::AfterReplay(std::function<void()>) {
  cuda::FailWithoutCuda("graph");
}
void Graph::Replay(bool) const { cuda::FailWithoutCuda("graph"); }
int64_t Graph::kernels() const { return 0; }
int64_t Graph::nodes() const { return 0; }

}  // namespace baton
