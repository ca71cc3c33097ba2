// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <vector>

#include "core/ops/rows.h"
#include "core/tensor.h"
#include "models/distributed/server/options.h"
#include "models/distributed/server/shard_table.h"

namespace baton::dist {

// The values of rows and the state of their rule, in one tensor each, on any
// device. Thread-compatible.
class RowTensors {
 public:
  // The rows are uninitialized.
  RowTensors(const RowTableOptions& options, int64_t rows, Device device);

  Device device() const { return device_; }         // any thread may call it
  const Tensor& values() const { return values_; }  // f32 [rows, width]
  // Makes room for that many rows, and for half as many again if they were
  // fewer; those that are new are uninitialized.
  void GrowTo(int64_t rows);
  // In the following, indices of rows are i64 [n], and these in host memory.
  // Gives each row the initial value of its key, and no state.
  void Begin(const Tensor& rows, const Tensor& keys);
  // Writes and reads records (RowTableImage).
  void Put(const Tensor& rows, const Tensor& records);
  Tensor Records(const Tensor& rows) const;
  // Makes a step of some rows, each at most once, which are on the device.
  void Step(const ops::Rows& gradients, const RowStep& by);

 private:
  // Calls fn(tensor, its first column in a record) for the values and the
  // state.
  template <typename Fn>
  void ForEachTensor(Fn fn) const;

  const RowTableOptions options_;
  const std::vector<ops::StateSlot> slots_;
  const Device device_;
  Tensor values_;
  std::vector<Tensor> state_;  // laid out as the values; undefined if unused
};

}  // namespace baton::dist
