// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/tensor.h"
#include "models/distributed/server/options.h"

namespace baton::dist {

// Writes the initial value of the row of `key`, which has the table's width.
void BeginRow(const RowTableOptions& table, int64_t key, float* value);
// Returns those of the rows of `keys`, i64 [n], in host memory: f32 [n, width].
Tensor BegunRows(const RowTableOptions& table, const Tensor& keys);

}  // namespace baton::dist
