// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/worker.h"

// The interface through which distributed autograd attaches data to calls
// without rpc depending on it. A call that is made with a scope carries, beside
// its values, the scope's own bytes. Each request and each response is one
// Crossing.
namespace baton::rpc {

// State that exists while the values of one message are encoded or decoded.
// Codecs of types that carry gradients (autograd/distributed) downcast it to
// store or find their values in it. Confined to one thread.
class Crossing {
 public:
  virtual ~Crossing() = default;
};

// The scope of a call: an autograd context, seen from one worker. Always held
// by a shared_ptr, since calls in flight keep it alive. Thread-safe.
class CallScope : public std::enable_shared_from_this<CallScope> {
 public:
  virtual ~CallScope() = default;

  // Sending side. FinishSend runs when all values are encoded and returns the
  // bytes to send with the message.
  virtual std::unique_ptr<Crossing> BeginSend(const WorkerInfo& to) = 0;
  virtual std::string FinishSend(Crossing& crossing) = 0;

  // Receiving side, for a request that carried `bytes` or for the response to a
  // call made with this scope. FinishReceive runs when all values are decoded.
  virtual absl::StatusOr<std::unique_ptr<Crossing>> BeginReceive(
      const WorkerInfo& from, const std::string& bytes) = 0;
  virtual absl::Status FinishReceive(Crossing& crossing) = 0;
};

// Makes the callee's scope from the bytes of a request. Distributed autograd
// sets it on the agent (dist::Attach). Thread-safe.
class CallScopeFactory {
 public:
  virtual ~CallScopeFactory() = default;
  virtual absl::StatusOr<std::shared_ptr<CallScope>> Open(
      const WorkerInfo& from, const std::string& bytes) = 0;
};

}  // namespace baton::rpc
