// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/parameter_server_batch/batch_server.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/ops/arithmetic.h"
#include "core/ops/multi_tensor.h"
#include "core/status.h"

namespace baton::examples {
namespace {

std::vector<Tensor> Copies(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& tensor : tensors) copies.push_back(tensor.Clone());
  return copies;
}

absl::Status CheckLike(const char* what, const std::vector<Tensor>& given,
                       const std::vector<Tensor>& wanted) {
  const bool fit = std::equal(given.begin(), given.end(), wanted.begin(),
                              wanted.end(), [](const auto& a, const auto& b) {
                                return a.defined() && a.shape() == b.shape() &&
                                       a.dtype() == b.dtype();
                              });
  if (fit) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a report has ", what, " of another model: ", given.size(),
      " tensors where the server has ", wanted.size(), ", or other shapes"));
}

// Sums begin with a copy: what was reported may be a trainer's own.
void AddTo(std::vector<Tensor>& sums, const std::vector<Tensor>& more) {
  if (sums.empty()) {
    sums = Copies(more);
  } else {
    ops::AddIntoMany(sums, more);
  }
}

}  // namespace

std::vector<Tensor> ParametersOf(const nn::Module& module) {
  std::vector<Tensor> tensors;
  for (const Variable& parameter : module.Parameters())
    tensors.push_back(parameter.tensor());
  return tensors;
}

std::vector<Tensor> BuffersOf(const nn::Module& module) {
  std::vector<Tensor> tensors;
  for (const auto& [name, buffer] : module.NamedBuffers()) {
    if (IsFloating(buffer.dtype())) tensors.push_back(buffer);
  }
  return tensors;
}

void CopyTo(const ModelState& state, const nn::Module& module) {
  const std::vector<Tensor> parameters = ParametersOf(module);
  for (size_t i = 0; i < parameters.size(); ++i)
    parameters[i].CopyFrom(state.parameters[i]);
  const std::vector<Tensor> buffers = BuffersOf(module);
  for (size_t i = 0; i < buffers.size(); ++i)
    buffers[i].CopyFrom(state.buffers[i]);
}

absl::StatusOr<std::shared_ptr<BatchServer>> BatchServer::Make(
    rpc::CallContext& call, const BatchTask& task) {
  ASSIGN_OR_RETURN(auto model, models::ResNet::Make(task.model));
  auto server =
      std::make_shared<BatchServer>(call.agent(), task, std::move(model));
  call.agent().WatchMembers(
      [weak = server->weak_from_this()](const rpc::MemberEvent& event) {
        const auto self = weak.lock();
        if (self == nullptr) return;
        // The watcher's thread must not take the step that this may lead to.
        self->agent_.executor().Post([self, event] { self->OnMember(event); });
      });
  return server;
}

BatchServer::BatchServer(rpc::Agent& agent, const BatchTask& task,
                         std::unique_ptr<models::ResNet> model)
    : agent_(agent),
      task_(task),
      model_(std::move(model)),
      optimizer_(model_->NamedParameters(), task.optimizer) {
  const MutexLock lock(mutex_);
  PublishLocked();
}

void BatchServer::PublishLocked() {
  state_ = {.step = status_.steps,
            .over = status_.steps >= task_.steps,
            .parameters = Copies(ParametersOf(*model_)),
            .buffers = Copies(BuffersOf(*model_))};
}

ModelState BatchServer::Join(rpc::CallContext& call) {
  const MutexLock lock(mutex_);
  trainers_[call.caller().name] = call.caller().incarnation;
  return state_;
}

void BatchServer::Leave(rpc::CallContext& call) { Remove(call.caller()); }

void BatchServer::OnMember(const rpc::MemberEvent& event) {
  using Kind = rpc::MemberEvent::Kind;
  if (event.kind == Kind::kLeft || event.kind == Kind::kLost)
    Remove(event.worker);
}

// It may have been the last that a step waited for.
void BatchServer::Remove(const rpc::WorkerInfo& worker) {
  Answer answer;
  {
    const MutexLock lock(mutex_);
    const auto found = trainers_.find(worker.name);
    if (found == trainers_.end() || found->second != worker.incarnation) return;
    trainers_.erase(found);
    if (IsWholeLocked()) answer = StepLocked();
  }
  answer.Give();
}

absl::Status BatchServer::Check(const GradientReport& report) const {
  const ModelState now = Read();
  RETURN_IF_ERROR(CheckLike("gradients", report.gradients, now.parameters));
  return CheckLike("buffers", report.buffers, now.buffers);
}

Future<ModelState> BatchServer::Report(const GradientReport& report) {
  if (absl::Status status = Check(report); !status.ok())
    return ReadyFuture<ModelState>(status);
  Promise<ModelState> promise;
  Answer answer;
  {
    const MutexLock lock(mutex_);
    if (state_.over) return ReadyFuture<ModelState>(state_);
    AddLocked(report);
    batch_.promises.push_back(promise);
    if (IsWholeLocked()) {
      answer = StepLocked();
    } else if (batch_.reports == 1) {
      agent_.timer().After(task_.wait, [weak = weak_from_this(),
                                        step = status_.steps] {
        const auto self = weak.lock();
        if (self == nullptr) return;
        self->agent_.executor().Post([self, step] { self->OnTimeOver(step); });
      });
    }
  }
  answer.Give();
  return promise.future();
}

void BatchServer::OnTimeOver(int64_t step) {
  Answer answer;
  {
    const MutexLock lock(mutex_);
    if (status_.steps != step || batch_.reports == 0) return;
    ++status_.cut_short;
    answer = StepLocked();
  }
  answer.Give();
}

void BatchServer::AddLocked(const GradientReport& report) {
  AddTo(batch_.gradients, report.gradients);
  AddTo(batch_.buffers, report.buffers);
  batch_.loss += report.loss;
  ++batch_.reports;
}

bool BatchServer::IsWholeLocked() const {
  const auto there = static_cast<int64_t>(trainers_.size());
  const int64_t wanted =
      task_.reports == 0 ? there : std::min(task_.reports, there);
  return batch_.reports > 0 && batch_.reports >= wanted;
}

BatchServer::Answer BatchServer::StepLocked() {
  const Batch batch = std::exchange(batch_, {});
  const auto count = static_cast<double>(batch.reports);
  const auto mean = [&](const Tensor& sum) {
    return ops::Div(sum, Tensor::Full({}, count, {.device = sum.device()}));
  };
  std::vector<Variable> parameters = model_->Parameters();
  optimizer_.ZeroGrad();
  for (size_t i = 0; i < parameters.size(); ++i)
    parameters[i].AccumulateGrad(mean(batch.gradients[i]));
  optimizer_.Step();
  const std::vector<Tensor> buffers = BuffersOf(*model_);
  for (size_t i = 0; i < buffers.size(); ++i)
    buffers[i].CopyFrom(mean(batch.buffers[i]));
  ++status_.steps;
  status_.reports += batch.reports;
  status_.loss = batch.loss / count;
  PublishLocked();
  Answer answer{.promises = batch.promises, .state = state_};
  if (state_.over) answer.ends.swap(ends_);
  return answer;
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
