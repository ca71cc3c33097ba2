// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/cut.h"

#include <algorithm>

namespace baton::dist {

bool Has(const Cut& cut, TrainerId trainer, int64_t sequence) {
  const auto found = cut.find(trainer);
  return sequence <= (found == cut.end() ? 0 : found->second.last);
}

void Include(const Cut& more, Cut& cut) {
  for (const auto& [trainer, pushes] : more) {
    int64_t& last = cut[trainer].last;
    last = std::max(last, pushes.last);
  }
}

bool Reaches(const Cut& cut, const Cut& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& pushes) {
    const auto found = cut.find(pushes.first);
    return (found != cut.end() && found->second.left) ||
           Has(cut, pushes.first, pushes.second.last);
  });
}

}  // namespace baton::dist
