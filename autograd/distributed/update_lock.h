// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/mutex.h"

namespace baton::dist {

// One per agent, found with agent.service<UpdateLock>(): held while parameters
// of its worker are updated, so that steps of several trainers come one after
// the other. Thread-safe.
struct UpdateLock {
  Mutex mutex;
};

}  // namespace baton::dist
