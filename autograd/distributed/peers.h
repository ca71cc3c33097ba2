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

// The messages that the workers' engines exchange for a backward.
namespace baton::dist {

// Edges that take part in a pass, by the worker that sent them; a worker that
// takes part without edges has an empty list.
using Marking = std::map<std::string, std::vector<uint64_t>>;

// Identifies a pass, with the root's settings.
struct PassRequest {
  ContextId context;
  PassId pass{};
  PassId oldest{};  // earlier passes of the context are over
  bool retain_graph = false;
  bool only_wanted = false;  // nothing is added to the context's gradients
  std::chrono::milliseconds time_left{};
  static constexpr auto Fields() {
    return std::tuple{&PassRequest::context,     &PassRequest::pass,
                      &PassRequest::oldest,      &PassRequest::retain_graph,
                      &PassRequest::only_wanted, &PassRequest::time_left};
  }
};

// Asks the receiver to mark what `edges` reach in its graph, and to forward the
// request to the workers that this reaches.
struct MarkRequest {
  PassRequest pass;
  std::vector<uint64_t> edges;  // EdgeIds of the receiver of this request
  static constexpr auto Fields() {
    return std::tuple{&MarkRequest::pass, &MarkRequest::edges};
  }
};

// Tells the receiver that everything is marked, and asks it to finish its
// share.
struct FinishRequest {
  PassRequest pass;
  // The receiver's edges that take part and were not marked; with `all`, every
  // edge that it sent.
  std::vector<uint64_t> edges;
  bool all = false;
  static constexpr auto Fields() {
    return std::tuple{&FinishRequest::pass, &FinishRequest::edges,
                      &FinishRequest::all};
  }
};

// Asks for the gradients of `parameters`, which the receiver has.
struct WantRequest {
  PassRequest pass;
  RRef<ParameterList> parameters;
  static constexpr auto Fields() {
    return std::tuple{&WantRequest::pass, &WantRequest::parameters};
  }
};

// The positions of these gradients in the answer of Finish.
struct WantedPlaces {
  uint64_t first = 0;
  uint64_t count = 0;
  static constexpr auto Fields() {
    return std::tuple{&WantedPlaces::first, &WantedPlaces::count};
  }
};

// Carries the gradients of one edge from its receiver back to its sender.
struct GradientMessage {
  ContextId context;
  PassId pass{};
  EdgeId edge{};
  // For each value of the edge, whether it has a gradient; `grads` contains
  // only those.
  std::vector<uint8_t> present;
  std::vector<Tensor> grads;
  static constexpr auto Fields() {
    return std::tuple{&GradientMessage::context, &GradientMessage::pass,
                      &GradientMessage::edge, &GradientMessage::present,
                      &GradientMessage::grads};
  }
};

// Sends requests to other engines, which answer from their On... method of the
// same name. Errors name the worker. Thread-safe; answers may arrive on any
// thread.
class Peers {
 public:
  virtual ~Peers() = default;

  // Returns what takes part from there on, including the requested edges.
  virtual Future<Marking> Mark(const std::string& to,
                               const MarkRequest& request) = 0;
  virtual Future<WantedPlaces> Want(const std::string& to,
                                    const WantRequest& request) = 0;
  virtual Future<void> Gradient(const std::string& to,
                                const GradientMessage& message,
                                std::chrono::milliseconds timeout) = 0;
  // Done when `to` has finished its share; returns the gradients that were
  // requested from it.
  virtual Future<std::vector<Tensor>> Finish(const std::string& to,
                                             const FinishRequest& request) = 0;
  // Returns what `to` was waiting for, once none of its nodes runs any more.
  virtual Future<std::string> Abort(const std::string& to,
                                    const ContextId& context, PassId pass,
                                    const absl::Status& why,
                                    std::chrono::milliseconds timeout) = 0;
  // Makes `to`, and the workers that it sent to, move the context's gradients
  // to their leaves' grad(). `number` identifies the root's move.
  virtual Future<void> MoveToGrad(const std::string& to,
                                  const ContextId& context,
                                  uint64_t number) = 0;
  // Has no time limit: done when `to` has ended its share or is lost. `why` is
  // empty if the root has ended the context; otherwise it says what happened to
  // the root.
  virtual Future<void> Release(const std::string& to, const ContextId& context,
                               const std::string& why) = 0;
  // Asks the context's root to notify this worker when the context ends. Has no
  // time limit. Returns Aborted or NotFound if the context does not exist any
  // more, and Unavailable if the root is lost.
  virtual Future<void> Join(const ContextId& context) = 0;
};

}  // namespace baton::dist
