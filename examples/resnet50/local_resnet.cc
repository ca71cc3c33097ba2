// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/resnet50/local_resnet.h"

#include <utility>

#include "autograd/engine.h"
#include "core/future.h"
#include "core/parallel.h"
#include "core/status.h"
#include "models/nn/loss.h"

namespace baton::examples {
namespace {

constexpr std::chrono::minutes kLongestStep{30};

// Runs `fn` on the device's thread and waits: one device works at a time.
template <typename Fn>
absl::Status RunOn(ThreadPool& thread, Fn fn) {
  Promise<void> done;
  thread.Post([&fn, done] { done.Set(CatchErrors([&] { fn(); })); });
  return done.future().Await(kLongestStep);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalResNet>> LocalResNet::Make(
    const Settings& settings, bool cut, int threads_per_stage) {
  const std::vector<std::string> cuts =
      cut ? settings.cuts : std::vector<std::string>();
  ASSIGN_OR_RETURN(auto stages,
                   models::ResNet::MakeStages(settings.model, cuts));
  std::unique_ptr<LocalResNet> model(new LocalResNet(settings.loss));
  for (auto& stage : stages) {
    Device device;
    device.optimizer = std::make_unique<optim::Any>(
        stage->Parameters(), settings.stepping.optimizer);
    device.stage = std::move(stage);
    device.thread = std::make_unique<ThreadPool>(1, "device");
    RETURN_IF_ERROR(RunOn(*device.thread, [threads_per_stage] {
      SetComputeThreads(threads_per_stage);
    }));
    model->devices_.push_back(std::move(device));
  }
  return model;
}

absl::StatusOr<double> LocalResNet::TrainStep(const TrainingBatch& batch) {
  Tensor value = batch.inputs;
  for (Device& device : devices_) {
    RETURN_IF_ERROR(
        RunOn(*device.thread, [&] { value = Forward(device, value); }));
  }
  double loss = 0;
  Device& last = devices_.back();
  RETURN_IF_ERROR(RunOn(*last.thread, [&] {
    loss = LossAndItsGradient(last, batch.targets, value);
  }));
  for (size_t i = devices_.size(); i-- > 0;) {
    Device& device = devices_[i];
    RETURN_IF_ERROR(RunOn(*device.thread, [&] {
      value = Backward(device, value);
      device.optimizer->Step();
      device.stage->ZeroGrad();
    }));
  }
  return loss;
}

Tensor LocalResNet::Forward(Device& device, const Tensor& input) const {
  const bool first = &device == &devices_.front();
  device.input = Variable(input, /*requires_grad=*/!first);
  device.output = device.stage->Forward(device.input);
  return device.output.tensor();
}

double LocalResNet::LossAndItsGradient(Device& device, const Tensor& targets,
                                       Tensor& gradient) const {
  const Variable logits(device.output.tensor(), true);
  const Variable loss = loss_ == dist::Loss::kMse
                            ? nn::MseLoss(logits, targets)
                            : nn::CrossEntropy(logits, targets);
  loss.Backward();
  gradient = logits.grad();
  return loss.tensor().Item();
}

Tensor LocalResNet::Backward(Device& device, const Tensor& gradient) const {
  device.output.Backward(gradient);
  Tensor result = device.input.grad();
  device.input = Variable();
  device.output = Variable();
  return result;
}

}  // namespace baton::examples
