// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "rpc/worker.h"

namespace baton::rpc::internal {

// True if both have the same name and, if `worker`'s incarnation is known, the
// same incarnation.
inline bool IsIncarnation(const WorkerInfo& worker, const WorkerInfo& of) {
  return worker.name == of.name &&
         (worker.incarnation == of.incarnation || worker.incarnation == 0);
}

// True if both have the same name and, if both incarnations are known, the same
// incarnation.
inline bool SameWorker(const WorkerInfo& a, const WorkerInfo& b) {
  return IsIncarnation(a, b) || IsIncarnation(b, a);
}

}  // namespace baton::rpc::internal
