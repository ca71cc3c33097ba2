// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "autograd/distributed/context_id.h"
#include "core/future.h"
#include "core/tensor.h"

// What the engines of the workers say to each other about a backward.
namespace baton::dist {

struct MarkRequest {
  ContextId context;
  PassId pass{};
  bool retain_graph = false;
  std::chrono::milliseconds time_left{};
  std::vector<uint64_t> edges;  // EdgeIds of the one who is asked
  static constexpr auto Fields() {
    return std::tuple{&MarkRequest::context, &MarkRequest::pass,
                      &MarkRequest::retain_graph, &MarkRequest::time_left,
                      &MarkRequest::edges};
  }
};

struct GradientMessage {
  ContextId context;
  PassId pass{};
  EdgeId edge{};
  // For each value of the edge whether a gradient comes; `grads` holds those
  // that do.
  std::vector<uint8_t> present;
  std::vector<Tensor> grads;
  static constexpr auto Fields() {
    return std::tuple{&GradientMessage::context, &GradientMessage::pass,
                      &GradientMessage::edge, &GradientMessage::present,
                      &GradientMessage::grads};
  }
};

// Sends to other engines, which answer from their On... of the same name.
// Errors name the worker. Thread-safe; answers may come on any thread.
class Peers {
 public:
  virtual ~Peers() = default;

  // The workers that take part from there on, the one asked included.
  virtual Future<std::vector<std::string>> Mark(const std::string& to,
                                                const MarkRequest& request) = 0;
  virtual Future<void> Gradient(const std::string& to,
                                const GradientMessage& message,
                                std::chrono::milliseconds timeout) = 0;
  // Ready when `to` has finished its share.
  virtual Future<void> Finish(const std::string& to, const ContextId& context,
                              PassId pass,
                              std::chrono::milliseconds timeout) = 0;
  // What `to` was waiting for.
  virtual Future<std::string> Abort(const std::string& to,
                                    const ContextId& context, PassId pass,
                                    const absl::Status& why,
                                    std::chrono::milliseconds timeout) = 0;
  // Without a time limit: ready when `to` has ended its share or is lost. `why`
  // is empty where the root has ended the context, else what became of the
  // root.
  virtual Future<void> Release(const std::string& to, const ContextId& context,
                               const std::string& why) = 0;
  // Asks the context's root to tell this worker of its end. Without a time
  // limit: Aborted or NotFound when there is no such context any more,
  // Unavailable when the root is lost.
  virtual Future<void> Join(const ContextId& context) = 0;
};

}  // namespace baton::dist
