// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/loop_thread.h"
#include "core/mutex.h"
#include "examples/parameter_server_batch/flat_model.h"
#include "models/distributed/server/dense_stepper.h"
#include "models/resnet.h"
#include "optim/any.h"
#include "rpc/agent.h"
#include "rpc/registry.h"

namespace baton::examples {

// What is trained, and how.
struct BatchTask {
  models::ResNetOptions model;
  optim::AnyOptions optimizer;
  int64_t steps = 100;
  // A step is made of the reports of so many trainers; 0: of all that are
  // there.
  int64_t reports = 0;
  // So long after its first report a step is made of those that have come.
  std::chrono::milliseconds wait{1000};
  std::string data;
  int64_t batch = 32;  // images of a report
  uint64_t seed = 1;
  static constexpr auto Fields() {
    using T = BatchTask;
    return std::tuple{&T::model, &T::optimizer, &T::steps, &T::reports,
                      &T::wait,  &T::data,      &T::batch, &T::seed};
  }
};

struct BatchStatus {
  int64_t steps = 0;
  int64_t reports = 0;    // that steps were made of
  int64_t cut_short = 0;  // steps whose time was over
  int64_t trainers = 0;   // that are there
  double loss = 0;        // mean of the last step's reports
  static constexpr auto Fields() {
    using S = BatchStatus;
    return std::tuple{&S::steps, &S::reports, &S::cut_short, &S::trainers,
                      &S::loss};
  }
};

// Keeps a model and steps it by the mean of the gradients of several trainers
// together, which are added in the order of their workers' ranks. A report is
// answered, without a thread that waits, once the step is done that it is part
// of: when enough trainers have reported, or its time is over. A trainer that
// comes late is part of the next one; one whose worker is lost, or that leaves,
// is not counted on any more. Thread-safe.
class BatchServer : public std::enable_shared_from_this<BatchServer> {
 public:
  static absl::StatusOr<std::shared_ptr<BatchServer>> Make(
      rpc::CallContext& call, const BatchTask& task);
  BatchServer(rpc::Agent& agent, const BatchTask& task,
              const ModelState& start);

  // From now on the caller's trainer is counted on, until it leaves.
  ModelState Join(rpc::CallContext& call);
  void Leave(rpc::CallContext& call);
  // InvalidArgument for gradients that are not those of the model.
  Future<ModelState> Report(rpc::CallContext& call,
                            const GradientReport& report);
  // The last step was the last one, whatever the task says.
  void Stop();
  ModelState Read() const;
  BatchStatus Status() const;
  // True once the last step is done, false after `longest`.
  Future<bool> IsOver(std::chrono::milliseconds longest);

  using Exports =
      rpc::Methods<&BatchServer::Make, rpc::kConcurrent<&BatchServer::Join>,
                   rpc::kConcurrent<&BatchServer::Leave>,
                   rpc::kConcurrent<&BatchServer::Report>,
                   rpc::kConcurrent<&BatchServer::Stop>,
                   rpc::kConcurrent<&BatchServer::Read>,
                   rpc::kConcurrent<&BatchServer::Status>,
                   rpc::kConcurrent<&BatchServer::IsOver>>;

 private:
  // What the next step is made of.
  struct Batch {
    std::multimap<rpc::Rank, GradientReport> reports{};
    std::vector<Promise<ModelState>> promises{};
  };
  // Promises to keep, without the lock.
  struct Answer {
    std::vector<Promise<ModelState>> promises{};
    ModelState state{};
    std::vector<Promise<bool>> ends{};
  };

  void OnMember(const rpc::MemberEvent& event);
  void OnTimeOver(int64_t step);
  void Remove(const rpc::WorkerInfo& worker);
  absl::Status Check(const GradientReport& report) const;
  bool IsWholeLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Answer StepLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Give(const Answer& answer) const;

  rpc::Agent& agent_;
  const BatchTask task_;
  LoopThread loops_{"baton-batch"};  // steps
  mutable Mutex mutex_;
  dist::DenseStepper stepper_ ABSL_GUARDED_BY(mutex_);
  Batch batch_ ABSL_GUARDED_BY(mutex_);
  ModelState state_ ABSL_GUARDED_BY(mutex_);
  BatchStatus status_ ABSL_GUARDED_BY(mutex_);
  // Workers whose trainers are there: the name, and the incarnation.
  std::map<std::string, uint64_t> trainers_ ABSL_GUARDED_BY(mutex_);
  std::vector<Promise<bool>> ends_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::examples
