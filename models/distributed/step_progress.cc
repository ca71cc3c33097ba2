// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/step_progress.h"

#include <memory>
#include <utility>
#include <vector>

namespace baton::dist {

// The stage whose delivery failed may have no more instructions, while another
// stage here waits for a value that will not arrive.
void StepProgress::BreakByDeliveries(
    const std::shared_ptr<StepProgress>& progress) {
  for (const auto& of_stage : progress->mail) {
    of_stage->delivered().OnReady(
        [weak = std::weak_ptr(progress)](const absl::Status& delivered) {
          if (delivered.ok()) return;
          if (const auto self = weak.lock()) self->Break(delivered);
        });
  }
}

void StepProgress::Break(const absl::Status& why) const {
  if (!agreed.Set(why) && agreed.future().Await().ok()) return;
  ran.Set(why);
  EndMail(why);
}

void StepProgress::EndMail(const absl::Status& why) const {
  for (const auto& of_stage : mail) of_stage->Fail(why);
  for (const auto& number : numbers) number->GiveUp(step);
}

Future<void> StepProgress::Delivered() const {
  std::vector<Future<void>> all;
  for (const auto& of_stage : mail) {
    of_stage->EndDeliveries();
    all.push_back(of_stage->delivered());
  }
  return WaitAll(all);
}

}  // namespace baton::dist
