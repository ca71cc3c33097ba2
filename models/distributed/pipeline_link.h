// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "rpc/debug_info.h"

namespace baton::dist {

// How what one stage of a pipeline gives another gets there. Plain data.
struct PipelineLink {
  int32_t from = 0;        // stage
  int32_t to = 0;          // a stage behind it
  std::string sender{};    // worker of the one
  std::string receiver{};  // and of the other
  // "local" within a worker, "window" where the last training step went by
  // windows (PipelineOptions::windows), else as PathTo says.
  std::string path{};
  std::string why_no_window{};  // where one was tried in vain
  static constexpr auto Fields() {
    return std::tuple{&PipelineLink::from,   &PipelineLink::to,
                      &PipelineLink::sender, &PipelineLink::receiver,
                      &PipelineLink::path,   &PipelineLink::why_no_window};
  }
};

// What links within a worker say for their path, and those by windows.
inline constexpr char kLocalPath[] = "local";
inline constexpr char kWindowPath[] = "window";

// By which way most of what the worker has sent `peer` in tensors went, on
// their present connection: a channel for tensors ("shared memory", "cuda ipc",
// "tcp") or, where none took any, the transport itself ("grpc",
// "in-process"). "none" before there is a connection.
std::string PathTo(const std::string& peer, const rpc::DebugInfo& worker);

}  // namespace baton::dist
