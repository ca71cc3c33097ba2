// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/status/status.h"
#include "core/future.h"
#include "rpc/collectives/collective.h"

namespace baton::rpc {

// Carries out the collectives of one group for one member. ProcessGroup checks
// the arguments, numbers the calls and records them; a backend moves and
// combines the elements.
class CollectiveBackend {
 public:
  virtual ~CollectiveBackend() = default;
  virtual std::string name() const = 0;  // for messages: "cpu"
  virtual bool Takes(Device device) const = 0;
  // Returns true if Run blocks until other members take part; it is then called
  // on a thread that may block. Otherwise Run enqueues the work on a device and
  // is called on the thread that calls the group, so that the caller's next
  // work on that device comes after it.
  virtual bool waits() const = 0;

  // Runs one collective. Called by one thread at a time, in the order of the
  // sequence numbers. The future becomes OK when the result is in `out`, or at
  // once while a graph is being recorded. Errors: DeadlineExceeded once the
  // deadline has passed; FailedPrecondition if another member calls something
  // else; Unavailable if a needed member is gone; the status given to Abort.
  // After an error nothing more is run, and `out` is unspecified.
  virtual Future<void> Run(const CollectiveWork& work) = 0;

  // Fails the collectives under way and all later ones with `why`. Any thread
  // may call it.
  virtual void Abort(const absl::Status& why) = 0;
  // Call this when a member has left in an orderly way; any thread may. What
  // the member sent before is still delivered; waiting for more from it fails
  // with `why`.
  virtual void Leave(int rank, const absl::Status& why) = 0;
};

}  // namespace baton::rpc
