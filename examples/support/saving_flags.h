// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/status/statusor.h"
#include "examples/support/saving.h"

namespace baton::examples {

// Reads and checks --checkpoint_dir, --save_every, --keep, --resume and
// --weights.
absl::StatusOr<Saving> SavingFromFlags();

}  // namespace baton::examples
