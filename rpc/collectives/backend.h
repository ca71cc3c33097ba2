// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/status/status.h"
#include "core/future.h"
#include "rpc/collectives/collective.h"

namespace baton::rpc {

// Carries out the collectives of one group for one member. ProcessGroup has
// checked the arguments, numbers the calls and keeps their record; a backend
// moves and combines elements.
class CollectiveBackend {
 public:
  virtual ~CollectiveBackend() = default;
  virtual std::string name() const = 0;  // for people: "cpu"
  virtual bool Takes(Device device) const = 0;
  // Whether Run waits for others: it is then called on a thread that may. Else
  // it gives the work to a device, and is called by whoever calls the group, so
  // that what the caller gives the device next comes after it.
  virtual bool waits() const = 0;

  // One at a time, in the order of their numbers. Ends with OK when the result
  // is in `out`; within a recording at once. Errors: DeadlineExceeded once the
  // deadline has passed; FailedPrecondition when another member does something
  // else; Unavailable when one that is needed is gone; what Abort was given.
  // After an error nothing more is run, and `out` may be anything.
  virtual Future<void> Run(const CollectiveWork& work) = 0;

  // Any thread: what is under way, and all that comes, fails with `why`.
  virtual void Abort(const absl::Status& why) = 0;
  // Any thread: a member has ended in order. What it had given until then is
  // still there; waits for more fail with `why`.
  virtual void Leave(int rank, const absl::Status& why) = 0;
};

}  // namespace baton::rpc
