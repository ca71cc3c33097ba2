// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/worker.h"

// How distributed autograd rides on calls without rpc knowing of it. A call
// made with a scope carries, beside its values, what the scope wants the other
// side to know; every request and every response is one Crossing.
namespace baton::rpc {

// Lives while the values of one message are encoded or decoded. Codecs of
// gradient-carrying types (autograd/distributed) downcast it to leave or find
// their values in it. Confined to one thread.
class Crossing {
 public:
  virtual ~Crossing() = default;
};

// The scope of a call: an autograd context, seen from one worker. Always held
// by a shared_ptr, since calls in flight keep it alive. Thread-safe.
class CallScope : public std::enable_shared_from_this<CallScope> {
 public:
  virtual ~CallScope() = default;

  // Sending side. Finish runs when all values are encoded and gives the bytes
  // that travel with the message.
  virtual std::unique_ptr<Crossing> BeginSend(const WorkerInfo& to) = 0;
  virtual std::string FinishSend(Crossing& crossing) = 0;

  // Receiving side, for a request that carried these bytes or for the response
  // to a call of this scope. FinishReceive runs when all values are decoded.
  virtual absl::StatusOr<std::unique_ptr<Crossing>> BeginReceive(
      const WorkerInfo& from, const std::string& bytes) = 0;
  virtual absl::Status FinishReceive(Crossing& crossing) = 0;
};

// Makes the callee's scope from the bytes of a request. Set on the agent by
// distributed autograd (dist::Attach); thread-safe.
class CallScopeFactory {
 public:
  virtual ~CallScopeFactory() = default;
  virtual absl::StatusOr<std::shared_ptr<CallScope>> Open(
      const WorkerInfo& from, const std::string& bytes) = 0;
};

}  // namespace baton::rpc
