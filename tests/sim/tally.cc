// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/sim/tally.h"

#include "absl/strings/str_cat.h"
#include "tests/sim/world.h"

namespace baton::sim {

int64_t Tally::NewTrainer(int group) {
  if (counts_.size() == kHalf) return -1;
  counts_.push_back({.group = group});
  return static_cast<int64_t>(counts_.size()) - 1;
}

void Tally::Ended(int64_t element, const absl::Status& status) {
  ++counts_[element].ended;
  if (status.ok()) ++counts_[element].acknowledged;
  has_failed_ |= !status.ok();
  World::Get().Mix(static_cast<uint64_t>(element * 31) +
                   static_cast<uint64_t>(status.code()));
}

void Tally::CheckElement(const Tensor& values, int64_t element,
                         int64_t least) const {
  const Count& count = counts_[element];
  const float pushes = values.data<float>()[element];
  if (pushes >= static_cast<float>(least) &&
      pushes <= static_cast<float>(count.begun))
    return;
  World& world = World::Get();
  world.Fail(absl::StrCat("of trainer ", element, ", worker ",
                          world.name(count.group), ", ", pushes,
                          " pushes were read; it made ", count.begun, ", and ",
                          least, " were acknowledged before"));
}

void Tally::CheckRead(const Tensor& values, int64_t element,
                      int64_t acknowledged) const {
  for (size_t other = 0; other < counts_.size(); ++other)
    CheckElement(values, static_cast<int64_t>(other), 0);
  CheckElement(values, element, acknowledged);
}

void Tally::CheckHalves(const Tensor& values) const {
  const float* const first = values.data<float>();
  for (int64_t element = 0; element < kHalf && !has_failed_; ++element) {
    const float one = first[element], other = first[element + kHalf];
    if (one == other) continue;
    World::Get().Fail(absl::StrCat("a read of one version has ", one, " and ",
                                   other, " pushes of trainer ", element));
  }
}

void Tally::CheckLast(const Tensor& values) const {
  for (size_t element = 0; element < counts_.size(); ++element)
    CheckElement(values, static_cast<int64_t>(element),
                 counts_[element].acknowledged);
}

std::string Tally::OpenPushes() const {
  std::string open;
  for (const Count& count : counts_) {
    if (count.ended == count.begun || !World::Get().alive(count.group))
      continue;
    absl::StrAppend(&open, " ", count.begun - count.ended, " pushes of ",
                    World::Get().name(count.group));
  }
  return open;
}

}  // namespace baton::sim
