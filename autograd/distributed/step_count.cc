// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/distributed/step_count.h"

#include <memory>

#include "absl/strings/str_cat.h"

namespace baton::dist {

rpc::View StepCount::View() const {
  rpc::View view{.name = "training",
                 .columns = {{"steps", rpc::View::Unit::kCount}}};
  const uint64_t steps = steps_.load(std::memory_order_relaxed);
  if (steps > 0) view.rows.push_back({absl::StrCat(steps)});
  return view;
}

void CountStep(const rpc::Agent& agent) {
  const std::shared_ptr<StepCount> count = agent.service<StepCount>();
  if (count != nullptr) count->Add();
}

}  // namespace baton::dist
