// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "rpc/debug_info.h"

namespace baton::dist {

// How values travel from one stage of a pipeline to another. Plain data.
struct PipelineLink {
  int32_t from = 0;        // stage
  int32_t to = 0;          // a stage behind it
  std::string sender{};    // the worker of stage `from`
  std::string receiver{};  // the worker of stage `to`
  // "local" within a worker, "window" if the last training step used windows
  // (PipelineOptions::windows), else what PathTo returns.
  std::string path{};
  std::string why_no_window{};  // if windows were tried and failed
  static constexpr auto Fields() {
    return std::tuple{&PipelineLink::from,   &PipelineLink::to,
                      &PipelineLink::sender, &PipelineLink::receiver,
                      &PipelineLink::path,   &PipelineLink::why_no_window};
  }
};

// The paths of links within a worker and of links by windows.
inline constexpr char kLocalPath[] = "local";
inline constexpr char kWindowPath[] = "window";

// Returns how most bytes of the tensors that the worker has sent to `peer` went
// over the present connection: a channel ("shared memory", "cuda ipc", "tcp")
// or, if no channel took any, the transport itself ("grpc", "in-process").
// "none" if there is no connection yet.
std::string PathTo(const std::string& peer, const rpc::DebugInfo& worker);

}  // namespace baton::dist
