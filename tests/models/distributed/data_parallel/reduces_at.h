// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <memory>

#include "autograd/variable.h"
#include "rpc/collectives/process_group.h"
#include "tests/support/within.h"

namespace baton::testing {

// Makes the backward of the value, which is between two layers, wait for the
// first collective that the group is given from now on. Returns whether it
// ended, so before the gradients of the layers before the value were there.
inline std::shared_ptr<const bool> ReducesAt(Variable& value,
                                             rpc::ProcessGroup& group) {
  const auto reduced = std::make_shared<bool>(false);
  const size_t before = group.records().size();
  value.AddHook([&group, reduced, before](const Tensor&) {
    *reduced = Within(std::chrono::seconds(20), [&] {
      const auto records = group.records();
      return records.size() > before &&
             records[before].state == rpc::FlightRecord::State::kDone;
    });
    return Tensor();
  });
  return reduced;
}

}  // namespace baton::testing
