// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "autograd/distributed/context_id.h"
#include "autograd/distributed/parameter_list.h"
#include "core/future.h"
#include "core/tensor.h"

// What the engines of the workers say to each other about a backward.
namespace baton::dist {

// Edges that take part in a pass, by the worker that sent them; one that takes
// part without has an empty list.
using Marking = std::map<std::string, std::vector<uint64_t>>;

// Which pass, and what its root has decided about it.
struct PassRequest {
  ContextId context;
  PassId pass{};
  PassId oldest{};  // those of the context before it are over
  bool retain_graph = false;
  bool only_wanted = false;  // nothing is added to the context's gradients
  std::chrono::milliseconds time_left{};
  static constexpr auto Fields() {
    return std::tuple{&PassRequest::context,     &PassRequest::pass,
                      &PassRequest::oldest,      &PassRequest::retain_graph,
                      &PassRequest::only_wanted, &PassRequest::time_left};
  }
};

struct MarkRequest {
  PassRequest pass;
  std::vector<uint64_t> edges;  // EdgeIds of the one who is asked
  static constexpr auto Fields() {
    return std::tuple{&MarkRequest::pass, &MarkRequest::edges};
  }
};

struct FinishRequest {
  PassRequest pass;
  // Those of the one who is asked that take part and were not marked, or,
  // `all`, every edge that it sent.
  std::vector<uint64_t> edges;
  bool all = false;
  static constexpr auto Fields() {
    return std::tuple{&FinishRequest::pass, &FinishRequest::edges,
                      &FinishRequest::all};
  }
};

// Asks for gradients of `parameters`, of the one who is asked.
struct WantRequest {
  PassRequest pass;
  RRef<ParameterList> parameters;
  static constexpr auto Fields() {
    return std::tuple{&WantRequest::pass, &WantRequest::parameters};
  }
};

// Their places among the tensors that Finish answers.
struct WantedPlaces {
  uint64_t first = 0;
  uint64_t count = 0;
  static constexpr auto Fields() {
    return std::tuple{&WantedPlaces::first, &WantedPlaces::count};
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

  // What takes part from there on, the edges that were asked for included.
  virtual Future<Marking> Mark(const std::string& to,
                               const MarkRequest& request) = 0;
  virtual Future<WantedPlaces> Want(const std::string& to,
                                    const WantRequest& request) = 0;
  virtual Future<void> Gradient(const std::string& to,
                                const GradientMessage& message,
                                std::chrono::milliseconds timeout) = 0;
  // Ready when `to` has finished its share: the gradients that it was asked
  // for.
  virtual Future<std::vector<Tensor>> Finish(const std::string& to,
                                             const FinishRequest& request) = 0;
  // What `to` was waiting for, once none of its nodes runs any more.
  virtual Future<std::string> Abort(const std::string& to,
                                    const ContextId& context, PassId pass,
                                    const absl::Status& why,
                                    std::chrono::milliseconds timeout) = 0;
  // Has `to`, and those that it sent to, put the context's gradients into their
  // leaves' grad(). `number` tells one such wish of the root from another.
  virtual Future<void> MoveToGrad(const std::string& to,
                                  const ContextId& context,
                                  uint64_t number) = 0;
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
