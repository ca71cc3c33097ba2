// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/security.h"

namespace baton::rpc::internal {

// Asked before each request is handled and again before it is answered: callers
// are told the error in place of an answer. Thread-safe.
using MayAnswer = std::function<absl::Status()>;

// A RendezvousServer (rpc/rendezvous.h) that answers only while it may.
// Thread-safe.
class GatedRendezvous {
 public:
  static absl::StatusOr<std::unique_ptr<GatedRendezvous>> Make(
      const std::string& listen, const Security& security, int max_members,
      MayAnswer may_answer);
  virtual ~GatedRendezvous() = default;
  virtual const std::string& address() const = 0;
};

}  // namespace baton::rpc::internal
