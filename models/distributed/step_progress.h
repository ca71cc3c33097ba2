// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/future.h"
#include "core/step_flags.h"
#include "models/distributed/mail_links.h"

namespace baton::dist {

// The progress of a step at one worker; the first call that names the step
// makes it. Thread-safe.
struct StepProgress {
  // `of_stages` has the step's links of each stage here; `of_worker` give the
  // step up on the devices.
  StepProgress(uint64_t of_step,
               std::vector<std::shared_ptr<MailLinks>> of_stages,
               std::vector<std::shared_ptr<StepNumber>> of_worker)
      : step(of_step),
        mail(std::move(of_stages)),
        numbers(std::move(of_worker)) {}
  // From now on a failed delivery breaks the step. Call it once and without a
  // lock.
  static void BreakByDeliveries(const std::shared_ptr<StepProgress>& progress);

  // Makes everything that waits for the step fail with `why`, unless its
  // parameters are already agreed to be stepped.
  void Break(const absl::Status& why) const;
  void EndMail(const absl::Status& why) const;
  // Call this when nothing more will be sent. Done when other workers have
  // received everything.
  Future<void> Delivered() const;

  const uint64_t step;
  const std::vector<std::shared_ptr<MailLinks>> mail;
  const std::vector<std::shared_ptr<StepNumber>> numbers;
  // Set when the whole step has been enqueued on GPUs, so that the next one may
  // be enqueued after it, or when it is over.
  Promise<void> given;
  Promise<double> ran;     // the program has run; see StageGroup::Ran
  Promise<double> agreed;  // parameters are to be stepped; see
                           // StageGroup::Agree
  Promise<void> over;      // no part of the step runs here any more
  bool begun = false;      // by a Run; guarded by the group's mutex
};

}  // namespace baton::dist
