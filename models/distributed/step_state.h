// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "core/tensor.h"

namespace baton::dist {

// The mail of one stage in one step: what came for it, in whatever order, until
// the compute thread takes it. Thread-safe.
class StepState {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // The input of a micro-batch; the future is its gradient, or an undefined
  // tensor where none is asked for, once the stage is through with it.
  Future<Tensor> PutInput(int micro_batch, Tensor input);
  void PutGradient(int micro_batch, Tensor gradient);
  // Ends the step: every wait and every future fails with the first `why`.
  void Fail(const absl::Status& why);
  // Why it has ended; OK while it goes on.
  absl::Status ended() const;

  // Wait for them. DeadlineExceeded says what did not come.
  absl::StatusOr<Tensor> TakeInput(int micro_batch, Deadline deadline);
  absl::StatusOr<Tensor> TakeGradient(int micro_batch, Deadline deadline);
  // Time that those above have waited.
  std::chrono::steady_clock::duration waited() const;
  // Answers PutInput.
  void Answer(int micro_batch, Tensor gradient);

 private:
  using Box = std::map<int, Tensor>;
  absl::StatusOr<Tensor> TakeFrom(Box StepState::*box, int micro_batch,
                                  const char* what, Deadline deadline);

  mutable Mutex mutex_;
  CondVar arrived_;
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);
  std::chrono::steady_clock::duration waited_ ABSL_GUARDED_BY(mutex_){};
  Box inputs_ ABSL_GUARDED_BY(mutex_);
  Box gradients_ ABSL_GUARDED_BY(mutex_);
  std::map<int, Promise<Tensor>> answers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::dist
