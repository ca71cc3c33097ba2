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

// How far a step has come at one worker; made by whoever speaks of it first.
// Thread-safe.
struct StepProgress {
  // `of_step` has the mail of each stage that is here; `of_worker` give it up
  // on the devices.
  StepProgress(uint64_t of_step,
               std::vector<std::shared_ptr<MailLinks>> of_stages,
               std::vector<std::shared_ptr<StepNumber>> of_worker)
      : step(of_step),
        mail(std::move(of_stages)),
        numbers(std::move(of_worker)) {}
  // From now on a delivery that fails breaks it. Once; not under a lock.
  static void BreakByDeliveries(const std::shared_ptr<StepProgress>& progress);

  // Unless it is agreed that parameters are stepped: all that waits for it
  // fails with `why`.
  void Break(const absl::Status& why) const;
  void EndMail(const absl::Status& why) const;
  // Nothing more is sent. Done when other workers have taken all that was.
  Future<void> Delivered() const;

  const uint64_t step;
  const std::vector<std::shared_ptr<MailLinks>> mail;
  const std::vector<std::shared_ptr<StepNumber>> numbers;
  // All of it is given to GPUs, in whose order the next one may follow, or
  // over.
  Promise<void> given;
  Promise<double> ran;     // the program: as StageGroup::Ran says
  Promise<double> agreed;  // that parameters are stepped: StageGroup::Agree
  Promise<void> over;      // nothing of it runs here any more
  bool begun = false;      // by a Run; guarded by the group's mutex
};

}  // namespace baton::dist
