// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "models/distributed/link_window.h"
#include "models/distributed/stage_links.h"
#include "models/distributed/step_plan.h"

namespace baton::dist {

// The shapes of the values that passed between a stage and a later one, by
// micro-batch. Plain data.
struct Passed {
  std::map<int, ParcelSpec> outputs, gradients;
};

// The links of a stage whose neighbors may be at other workers. A link uses a
// window if Begin names one for the neighbor, and calls otherwise: outputs are
// delivered to later stages, whose answers are the gradients. Stores what
// arrives for the stage in one step, in any order, until the compute thread
// takes it. Held by a shared_ptr. Thread-safe.
class MailLinks final : public StageLinks,
                        public std::enable_shared_from_this<MailLinks> {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  // Calls PutInputs of a later stage; fails at the deadline.
  using Deliver = std::function<Future<Values>(
      int target, int micro_batch, const Outputs& outputs, Deadline deadline)>;

  MailLinks(const StageSpec& spec, Deliver deliver)
      : spec_(spec), deliver_(std::move(deliver)) {}

  // Called for a stage before this one, with its outputs for a micro-batch. The
  // future is done when this stage is through with the micro-batch; its value
  // is the gradients, as TakeGradients returns them at the caller's stage.
  Future<Values> PutInputs(int source, int micro_batch, Outputs inputs);
  // Ends the step: every wait and every future fails with the first `why`. A
  // failed delivery ends the step, too.
  void Fail(const absl::Status& why);
  // Done when everything sent before EndDeliveries has been answered; fails
  // when the step does.
  Future<void> delivered() const { return delivered_.future(); }
  void EndDeliveries();
  // Call this on the compute thread before the step's program. The deadline
  // applies to all waits that begin later and to everything sent.
  void Begin(uint64_t step, Deadline deadline, WindowMap windows);
  // Call this on the compute thread after the program: waits until this stage
  // neither reads nor writes its windows any more, and then drops them. What
  // arrived through them is what was sent, unless ended() returns an error.
  void Drain();
  // Returns the shapes of what was sent to later stages and came back. For the
  // compute thread.
  const std::map<int, Passed>& passed() const { return passed_; }

  absl::Status ended() const override;
  bool MayWait(int) const override { return true; }
  // DeadlineExceeded says what did not arrive.
  absl::StatusOr<Outputs> TakeInputs(int source, int micro_batch) override;
  absl::StatusOr<Values> TakeGradients(int target, int micro_batch) override;
  void SendOutputs(int target, int micro_batch,
                   const Outputs& outputs) override;
  void SendGradients(int source, int micro_batch, Values gradients) override;

 private:
  using Key = std::pair<int, int>;  // stage, micro-batch
  template <typename T>
  using Box = std::map<Key, T>;
  template <typename T>
  absl::StatusOr<T> TakeFrom(Box<T> MailLinks::*box, Key key, const char* what);
  void OnAnswer(Key key, const absl::StatusOr<Values>& gradients);
  absl::StatusOr<Outputs> TakeThrough(LinkWindow& window, Key key,
                                      const char* what);
  void SendThrough(LinkWindow& window, int micro_batch, const Outputs& outputs);
  LinkWindow* WindowTo(int stage) const;

  const StageSpec spec_;
  const Deliver deliver_;
  mutable Mutex mutex_;
  CondVar arrived_;
  Deadline deadline_ ABSL_GUARDED_BY(mutex_) = Deadline::max();
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);
  Box<Outputs> inputs_ ABSL_GUARDED_BY(mutex_);
  Box<Values> gradients_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, Promise<Values>> answers_ ABSL_GUARDED_BY(mutex_);
  uint64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  WindowMap windows_ ABSL_GUARDED_BY(mutex_);
  std::map<int, Passed> passed_;  // only the compute thread uses it
  int under_way_ ABSL_GUARDED_BY(mutex_) = 0;  // number of deliveries
  bool all_sent_ ABSL_GUARDED_BY(mutex_) = false;
  const Promise<void> delivered_;
};

}  // namespace baton::dist
