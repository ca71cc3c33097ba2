// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/parameter_server_batch/batch_server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/compute_threads.h"
#include "core/ops/arithmetic.h"
#include "core/ops/multi_tensor.h"
#include "core/status.h"
#include "examples/support/optimizer_flags.h"
#include "models/distributed/server/options.h"
#include "models/distributed/server/step_threads.h"

namespace baton::examples {
namespace {

absl::Status CheckLike(const char* what, const Tensor& given,
                       const Tensor& wanted) {
  if (given.defined() && given.shape() == wanted.shape() &&
      given.dtype() == wanted.dtype())
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a report has ", what, " of another model: ",
                   given.defined() ? given.ToString() : std::string("nothing"),
                   " where the server has ", wanted.ToString()));
}

std::pair<rpc::Rank, uint64_t> KeyOf(const rpc::WorkerInfo& worker) {
  return {worker.rank, worker.incarnation};
}

Tensor Mean(const std::vector<Tensor>& tensors) {
  const Tensor sum = tensors.front().Clone();  // a trainer may share it
  for (size_t i = 1; i < tensors.size(); ++i)
    ops::AddIntoMany({sum}, {tensors[i]});
  return ops::Div(sum, Tensor::Full({}, static_cast<double>(tensors.size()),
                                    {.device = sum.device()}));
}

}  // namespace

absl::StatusOr<std::shared_ptr<BatchServer>> BatchServer::Make(
    rpc::CallContext& call, const BatchTask& task) {
  RETURN_IF_ERROR(dist::Check({.rule = task.optimizer}));
  ASSIGN_OR_RETURN(const auto model, models::ResNet::Make(task.model));
  ASSIGN_OR_RETURN(const FlatModel flat, FlatModel::Make(*model));
  auto server = std::make_shared<BatchServer>(call.agent(), task, flat.State());
  call.agent().WatchMembers(
      [weak = server->weak_from_this()](const rpc::MemberEvent& event) {
        const auto self = weak.lock();
        if (self == nullptr) return;
        // A step may follow, which must not run on the watcher's thread.
        self->agent_.executor().Post([self, event] { self->OnMember(event); });
      });
  return server;
}

BatchServer::BatchServer(rpc::Agent& agent, const BatchTask& task,
                         const ModelState& start)
    : agent_(agent),
      task_(task),
      rate_(Stepping{.optimizer = task.optimizer, .schedule = task.schedule}
                .RateOver(task.steps)),
      stepper_(task.optimizer, start.parameters.shape(),
               start.parameters.device()),
      state_(start) {
  const MutexLock lock(mutex_);
  state_.over = task.steps <= 0;
}

ModelState BatchServer::Join(rpc::CallContext& call) {
  const MutexLock lock(mutex_);
  trainers_[call.caller().name] = call.caller();
  return state_;
}

void BatchServer::Leave(rpc::CallContext& call) { Remove(call.caller()); }

void BatchServer::OnMember(const rpc::MemberEvent& event) {
  using Kind = rpc::MemberEvent::Kind;
  if (event.kind == Kind::kLeft || event.kind == Kind::kLost)
    Remove(event.worker);
}

// The next step may have waited only for this worker, and is then made.
void BatchServer::Remove(const rpc::WorkerInfo& worker) {
  Answer answer;
  {
    const MutexLock lock(mutex_);
    const auto found = trainers_.find(worker.name);
    if (found == trainers_.end() || KeyOf(found->second) != KeyOf(worker))
      return;
    trainers_.erase(found);
    if (IsWholeLocked()) answer = StepLocked();
  }
  Give(answer);
}

absl::Status BatchServer::Check(const GradientReport& report) const {
  const ModelState now = Read();
  RETURN_IF_ERROR(CheckLike("gradients", report.gradients, now.parameters));
  return CheckLike("buffers", report.buffers, now.buffers);
}

absl::Status BatchServer::CheckTrainerLocked(
    const rpc::WorkerInfo& worker) const {
  const auto found = trainers_.find(worker.name);
  if (found == trainers_.end() || KeyOf(found->second) != KeyOf(worker)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "worker ", worker.name, " reports, but its trainer is not there: it ",
        "has not joined, or was given up"));
  }
  if (!batch_.reports.contains(KeyOf(worker))) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "worker ", worker.name, " has reported for this step already"));
}

Future<ModelState> BatchServer::Report(rpc::CallContext& call,
                                       const GradientReport& report) {
  if (absl::Status status = Check(report); !status.ok())
    return ReadyFuture<ModelState>(status);
  Promise<ModelState> promise;
  Answer answer;
  {
    const MutexLock lock(mutex_);
    if (state_.over) return ReadyFuture<ModelState>(state_);
    if (absl::Status status = CheckTrainerLocked(call.caller()); !status.ok())
      return ReadyFuture<ModelState>(status);
    batch_.reports.emplace(KeyOf(call.caller()), report);
    batch_.promises.push_back(promise);
    if (IsWholeLocked()) {
      answer = StepLocked();
    } else if (batch_.reports.size() == 1) {
      agent_.timer().After(task_.wait, [weak = weak_from_this(),
                                        step = status_.steps] {
        const auto self = weak.lock();
        if (self == nullptr) return;
        self->agent_.executor().Post([self, step] { self->OnTimeOver(step); });
      });
    }
  }
  Give(answer);
  return promise.future();
}

void BatchServer::OnTimeOver(int64_t step) {
  Answer answer;
  {
    const MutexLock lock(mutex_);
    if (status_.steps != step || batch_.reports.empty()) return;
    ++status_.cut_short;
    answer = StepLocked();
  }
  Give(answer);
}

bool BatchServer::IsWholeLocked() const {
  const auto come = static_cast<int64_t>(batch_.reports.size());
  if (come == 0) return false;
  if (task_.reports > 0 && come >= task_.reports) return true;
  for (const auto& [name, trainer] : trainers_) {
    if (!batch_.reports.contains(KeyOf(trainer))) return false;
  }
  return true;
}

BatchServer::Answer BatchServer::StepLocked() {
  const Batch batch = std::exchange(batch_, {});
  const auto count = static_cast<double>(batch.reports.size());
  std::vector<Tensor> gradients, buffers;
  status_.loss = 0;
  for (const auto& [worker, report] : batch.reports) {
    gradients.push_back(report.gradients);
    buffers.push_back(report.buffers);
    status_.loss += report.loss / count;
  }
  const ComputeThreadsScope threads(dist::StepThreadsHere({}));
  const LoopThread::Scope loops(loops_);
  state_.parameters = stepper_.Step(state_.parameters, {gradients}, 1 / count,
                                    rate_(status_.steps));
  state_.buffers = Mean(buffers);
  state_.step = ++status_.steps;
  state_.over = status_.steps >= task_.steps;
  status_.reports += static_cast<int64_t>(batch.reports.size());
  Answer answer{.promises = batch.promises, .state = state_};
  if (state_.over) answer.ends.swap(ends_);
  return answer;
}

// Several threads copy large answers at the same time.
void BatchServer::Give(const Answer& answer) const {
  for (const auto& promise : answer.promises) {
    agent_.executor().Post(
        [promise, state = answer.state] { promise.Set(state); });
  }
  for (const auto& end : answer.ends) end.Set(true);
}

void BatchServer::Stop() {
  Answer answer;
  {
    const MutexLock lock(mutex_);
    state_.over = true;
    answer = {.promises = std::exchange(batch_, {}).promises, .state = state_};
    answer.ends.swap(ends_);
  }
  Give(answer);
}

ModelState BatchServer::Read() const {
  const MutexLock lock(mutex_);
  return state_;
}

Future<bool> BatchServer::IsOver(std::chrono::milliseconds longest) {
  const Promise<bool> promise;
  {
    const MutexLock lock(mutex_);
    if (state_.over) return ReadyFuture<bool>(true);
    ends_.push_back(promise);
  }
  agent_.timer().After(longest, [&executor = agent_.executor(), promise] {
    executor.Post([promise] { promise.Set(false); });
  });
  return promise.future();
}

BatchStatus BatchServer::Status() const {
  const MutexLock lock(mutex_);
  BatchStatus status = status_;
  status.trainers = static_cast<int64_t>(trainers_.size());
  return status;
}

}  // namespace baton::examples
