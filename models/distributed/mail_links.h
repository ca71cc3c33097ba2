// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "core/tensor.h"
#include "models/distributed/stage_links.h"
#include "models/distributed/step_plan.h"

namespace baton::dist {

// Links of a stage whose neighbours are at workers of their own: outputs go to
// the next stage as calls, whose answers are the gradients. Keeps what came for
// the stage in one step, in whatever order, until the compute thread takes it.
// Held by a shared_ptr. Thread-safe.
class MailLinks final : public StageLinks,
                        public std::enable_shared_from_this<MailLinks> {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  // Calls the next stage's PutInput, by the deadline.
  using Deliver = std::function<Future<Tensor>(
      int micro_batch, const Tensor& output, Deadline deadline)>;

  MailLinks(const StageSpec& spec, Deliver deliver)
      : spec_(spec), deliver_(std::move(deliver)) {}

  // From the stage before: the input of a micro-batch; the future is its
  // gradient, or an undefined tensor where none is asked for, once the stage is
  // through with it.
  Future<Tensor> PutInput(int micro_batch, Tensor input);
  // Ends the step: every wait and every future fails with the first `why`.
  void Fail(const absl::Status& why);
  // Of all waits that begin from now on, and of what is sent.
  void set_deadline(Deadline deadline);

  absl::Status ended() const override;
  // DeadlineExceeded says what did not come.
  absl::StatusOr<Tensor> TakeInput(int micro_batch) override;
  absl::StatusOr<Tensor> TakeGradient(int micro_batch) override;
  void SendOutput(int micro_batch, const Tensor& output) override;
  void SendGradient(int micro_batch, Tensor gradient) override;

 private:
  using Box = std::map<int, Tensor>;
  absl::StatusOr<Tensor> TakeFrom(Box MailLinks::*box, int micro_batch,
                                  const char* what);
  void PutGradient(int micro_batch, Tensor gradient);

  const StageSpec spec_;
  const Deliver deliver_;
  mutable Mutex mutex_;
  CondVar arrived_;
  Deadline deadline_ ABSL_GUARDED_BY(mutex_) = Deadline::max();
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);
  Box inputs_ ABSL_GUARDED_BY(mutex_);
  Box gradients_ ABSL_GUARDED_BY(mutex_);
  std::map<int, Promise<Tensor>> answers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::dist
