// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
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

// The model to train and how.
struct BatchTask {
  models::ResNetOptions model;
  optim::AnyOptions optimizer;
  std::string schedule = "constant";  // the name of the rate's schedule
  int64_t steps = 100;
  // The number of reports that make a step; 0: one of each present trainer.
  int64_t reports = 0;
  // This time after its first report a step is made of the reports that have
  // come.
  std::chrono::milliseconds wait{1000};
  std::string data;
  int64_t batch = 32;  // per report
  uint64_t seed = 1;
  static constexpr auto Fields() {
    using T = BatchTask;
    return std::tuple{&T::model, &T::optimizer, &T::schedule,
                      &T::steps, &T::reports,   &T::wait,
                      &T::data,  &T::batch,     &T::seed};
  }
};

struct BatchStatus {
  int64_t steps = 0;
  int64_t reports = 0;    // used in steps
  int64_t cut_short = 0;  // steps made when the time was over
  int64_t trainers = 0;   // present
  double loss = 0;        // mean over the last step's reports
  static constexpr auto Fields() {
    using S = BatchStatus;
    return std::tuple{&S::steps, &S::reports, &S::cut_short, &S::trainers,
                      &S::loss};
  }
};

// Keeps a model and steps it by the mean gradient of several trainers' reports,
// which are added in the order of their workers' ranks. A step is made when
// enough trainers have reported or its time is over; then its reports are
// answered. Until then they hold no thread. A late report becomes part of the
// next step. A trainer that leaves, or whose worker is lost, is not waited for;
// what it has reported still counts. Thread-safe.
class BatchServer : public std::enable_shared_from_this<BatchServer> {
 public:
  static absl::StatusOr<std::shared_ptr<BatchServer>> Make(
      rpc::CallContext& call, const BatchTask& task);
  BatchServer(rpc::Agent& agent, const BatchTask& task,
              const ModelState& start);

  // From now on steps wait for the caller's trainer, until it leaves.
  ModelState Join(rpc::CallContext& call);
  void Leave(rpc::CallContext& call);
  // Returns InvalidArgument for gradients that do not fit the model and for a
  // second report for one step, and FailedPrecondition if the caller's trainer
  // has not joined.
  Future<ModelState> Report(rpc::CallContext& call,
                            const GradientReport& report);
  // Ends the training, whatever the task says.
  void Stop();
  ModelState Read() const;
  BatchStatus Status() const;
  // Returns true once the last step is done, false after `longest`.
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
  // The reports for the next step.
  struct Batch {
    // By the ranks and incarnations of the trainers' workers.
    std::map<std::pair<rpc::Rank, uint64_t>, GradientReport> reports{};
    std::vector<Promise<ModelState>> promises{};
  };
  // Promises to set after the lock is released.
  struct Answer {
    std::vector<Promise<ModelState>> promises{};
    ModelState state{};
    std::vector<Promise<bool>> ends{};
  };

  void OnMember(const rpc::MemberEvent& event);
  void OnTimeOver(int64_t step);
  void Remove(const rpc::WorkerInfo& worker);
  absl::Status Check(const GradientReport& report) const;
  absl::Status CheckTrainerLocked(const rpc::WorkerInfo& worker) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsWholeLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Answer StepLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Give(const Answer& answer) const;

  rpc::Agent& agent_;
  const BatchTask task_;
  // Returns the rate by the number of steps done before.
  const std::function<double(int64_t)> rate_;
  LoopThread loops_{"baton-batch"};  // computes the steps
  mutable Mutex mutex_;
  dist::DenseStepper stepper_ ABSL_GUARDED_BY(mutex_);
  Batch batch_ ABSL_GUARDED_BY(mutex_);
  ModelState state_ ABSL_GUARDED_BY(mutex_);
  BatchStatus status_ ABSL_GUARDED_BY(mutex_);
  // The workers with a trainer, by name.
  std::map<std::string, rpc::WorkerInfo> trainers_ ABSL_GUARDED_BY(mutex_);
  std::vector<Promise<bool>> ends_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::examples
