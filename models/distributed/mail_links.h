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

// What passed between a stage and one behind it, by micro-batch. Plain data.
struct Passed {
  std::map<int, ParcelSpec> outputs, gradients;
};

// Links of a stage whose neighbours may be at other workers: by windows where
// Begin names one for a neighbour, else by mail: outputs are delivered to
// stages behind it, whose answers are the gradients. Keeps what came for the
// stage in one step, in whatever order, until the compute thread takes it. Held
// by a shared_ptr. Thread-safe.
class MailLinks final : public StageLinks,
                        public std::enable_shared_from_this<MailLinks> {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  // To PutInputs of a stage behind this one, by the deadline.
  using Deliver = std::function<Future<Values>(
      int target, int micro_batch, const Outputs& outputs, Deadline deadline)>;

  MailLinks(const StageSpec& spec, Deliver deliver)
      : spec_(spec), deliver_(std::move(deliver)) {}

  // From a stage before this one: what it gives of a micro-batch; the future is
  // of the gradients, as TakeGradients there gives them, once the stage is
  // through with it.
  Future<Values> PutInputs(int source, int micro_batch, Outputs inputs);
  // Ends the step: every wait and every future fails with the first `why`. A
  // delivery that fails does so.
  void Fail(const absl::Status& why);
  // Done when all is answered that was sent before EndDeliveries; fails when
  // the step does.
  Future<void> delivered() const { return delivered_.future(); }
  void EndDeliveries();
  // On the compute thread, before the step's program. The deadline is that of
  // all waits that begin from now on, and of what is sent.
  void Begin(uint64_t step, Deadline deadline, WindowMap windows);
  // There, after it: until windows are neither read nor written by this stage
  // any more, and then without them. Unless ended() says something else, what
  // has come through them is what was sent.
  void Drain();
  // There: what has gone to stages behind this one, and come back.
  const std::map<int, Passed>& passed() const { return passed_; }

  absl::Status ended() const override;
  // DeadlineExceeded says what did not come.
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
  std::map<int, Passed> passed_;               // the compute thread's
  int under_way_ ABSL_GUARDED_BY(mutex_) = 0;  // deliveries
  bool all_sent_ ABSL_GUARDED_BY(mutex_) = false;
  const Promise<void> delivered_;
};

}  // namespace baton::dist
