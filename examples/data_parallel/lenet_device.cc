// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/data_parallel/lenet_device.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/tensors_of.h"
#include "core/ops/arithmetic.h"
#include "core/status.h"
#include "core/stream.h"
#include "models/distributed/data_parallel/gradient_buckets.h"
#include "models/nn/loss.h"
#include "rpc/tracer.h"

namespace baton::examples {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kDeviceTrack[] = "by hand";  // the row of a trace

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double Checksum(const nn::Module& model) {
  double sum = 0;
  for (const Variable& parameter : model.Parameters()) {
    const Tensor values = parameter.tensor().To(Device::Cpu());
    for (const float value : values.ToVector<float>()) sum += value;
  }
  return sum;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LeNetDevice>> LeNetDevice::Make(
    rpc::CallContext& call, const LeNetDevicesTask& task) {
  ASSIGN_OR_RETURN(const AllReduceWay way, ParseAllReduceWay(task.all_reduce));
  rpc::GroupOptions options;
  options.name = absl::StrJoin(task.members, "+");
  options.members = task.members;
  options.timeout = std::chrono::milliseconds(task.timeout_ms);
  ASSIGN_OR_RETURN(
      auto group,
      rpc::ProcessGroup::Make(call.agent(), options).Await(options.timeout));
  const Device device = call.agent().self().compute.device;
  RETURN_IF_ERROR(group->Takes(device));
  std::unique_ptr<LeNetDevice> made;
  RETURN_IF_ERROR(CatchErrors([&] {
    made.reset(new LeNetDevice(task, way, device, std::move(group)));
  }));
  if (made->group_->rank() == 0) {
    ASSIGN_OR_RETURN(made->digits_, LoadDigits(task.data));
    if (made->digits_.training.size() < task.batch) {
      return absl::InvalidArgumentError(
          absl::StrCat(task.data, " has no batch of ", task.batch));
    }
  }
  return made;
}

LeNetDevice::LeNetDevice(const LeNetDevicesTask& task, AllReduceWay way,
                         Device device,
                         std::shared_ptr<rpc::ProcessGroup> group)
    : task_(task),
      way_(way),
      device_(device),
      group_(std::move(group)),
      generator_(task.seed),
      model_(generator_) {
  model_.To(device_);
  optimizer_.emplace(model_.Parameters(), task.optimizer);
}

absl::Status LeNetDevice::Together(const std::function<absl::Status()>& fn) {
  const absl::Status status = CatchErrors(fn);
  if (!status.ok() && group_->status().ok()) group_->Abort(status);
  return status;
}

absl::StatusOr<std::vector<Digits>> LeNetDevice::NextParts() {
  if (group_->rank() != 0) return std::vector<Digits>();
  const auto batch = static_cast<size_t>(task_.batch);
  if (place_ + batch > order_.size()) return std::vector<Digits>();
  const auto begin = order_.begin() + static_cast<std::ptrdiff_t>(place_);
  place_ += batch;
  return SplitBatch(digits_.training.Take(std::vector<int64_t>(
                        begin, begin + static_cast<std::ptrdiff_t>(batch))),
                    group_->size());
}

// Weights each loss by its share of the batch, so that the sums over the
// devices are the loss and the gradients of the whole batch.
absl::Status LeNetDevice::Step(const BatchPart& part, LeNetEpoch& epoch) {
  rpc::Tracer& tracer = *group_->agent().tracer();
  std::optional<rpc::TraceSpan> span;
  span.emplace(tracer, kDeviceTrack, [] { return "forward and backward"; });
  optimizer_->ZeroGrad();
  const Digits& digits = part.digits;
  const Variable loss =
      nn::CrossEntropy(model_.Forward(Variable(digits.images.To(device_))),
                       digits.labels.To(device_));
  const double share =
      static_cast<double>(digits.size()) / static_cast<double>(part.of);
  loss.Backward(Tensor::Scalar(share).To(device_));
  const std::vector<Tensor> gradients = GradientsOf(model_.Parameters());
  const dist::FlatTensor flat = dist::FlatTensor::Like(gradients);
  for (size_t i = 0; i < gradients.size(); ++i)
    flat.parts[i].CopyFrom(gradients[i]);
  Synchronize(device_);
  const auto begin = Clock::now();
  span.emplace(tracer, kDeviceTrack, [&] {
    return absl::StrCat("all-reduce, ", std::string(Name(way_)));
  });
  RETURN_IF_ERROR(AllReduce(*group_, flat.all, way_));
  span.emplace(tracer, kDeviceTrack, [] { return "optimizer"; });
  epoch.reducing_s += SecondsSince(begin);
  std::vector<Variable> parameters = model_.Parameters();
  for (size_t i = 0; i < parameters.size(); ++i)
    parameters[i].set_grad(flat.parts[i]);
  optimizer_->Step();
  epoch.loss += loss.tensor().Item() * share;
  epoch.images += part.of;
  return absl::OkStatus();
}

absl::Status LeNetDevice::Train(LeNetEpoch& epoch) {
  for (;;) {
    ASSIGN_OR_RETURN(const auto parts, NextParts());
    ASSIGN_OR_RETURN(const auto part, Scatter(*group_, parts));
    if (!part.has_value()) break;
    RETURN_IF_ERROR(Step(*part, epoch));
  }
  const Tensor loss = Tensor::Full({1}, epoch.loss, {.dtype = DType::kF64});
  RETURN_IF_ERROR(AllReduce(*group_, loss, AllReduceWay::kTree));
  epoch.loss = loss.Item() * static_cast<double>(task_.batch) /
               static_cast<double>(epoch.images);
  return absl::OkStatus();
}

absl::StatusOr<LeNetEpoch> LeNetDevice::TrainEpoch() {
  if (group_->rank() == 0) {
    Generator order(task_.seed + ++epoch_);
    order_ =
        RandPermutation(digits_.training.size(), order).ToVector<int64_t>();
    place_ = 0;
  }
  const auto begin = Clock::now();
  LeNetEpoch epoch;
  RETURN_IF_ERROR(Together([&] { return Train(epoch); }));
  epoch.seconds = SecondsSince(begin);
  epoch.checksum = Checksum(model_);
  return epoch;
}

absl::Status LeNetDevice::Examine(double& accuracy) {
  std::vector<Digits> parts;
  if (group_->rank() == 0) {
    ASSIGN_OR_RETURN(parts, SplitBatch(digits_.held_out, group_->size()));
  }
  ASSIGN_OR_RETURN(const auto part, Scatter(*group_, parts));
  const auto count = static_cast<double>(CountRight(model_, part->digits));
  const Tensor right = Tensor::Full({1}, count, {.dtype = DType::kI64});
  RETURN_IF_ERROR(AllReduce(*group_, right, AllReduceWay::kTree));
  accuracy = right.Item() / static_cast<double>(part->of);
  return absl::OkStatus();
}

absl::StatusOr<double> LeNetDevice::Accuracy() {
  double accuracy = 0;
  RETURN_IF_ERROR(Together([&] { return Examine(accuracy); }));
  return accuracy;
}

absl::Status LeNetDevice::TimeOnce(const Tensor& flat, AllReduceWay way,
                                   double& seconds) {
  flat.Fill(group_->rank() + 1);
  Synchronize(device_);
  RETURN_IF_ERROR(group_->Barrier().Await(kNoLimit));
  const auto begin = Clock::now();
  RETURN_IF_ERROR(AllReduce(*group_, flat, way));
  Synchronize(device_);
  seconds = SecondsSince(begin);
  return absl::OkStatus();
}

absl::StatusOr<double> LeNetDevice::TimeAllReduce(int64_t elements,
                                                  const std::string& name,
                                                  int64_t repeats) {
  ASSIGN_OR_RETURN(const AllReduceWay way, ParseAllReduceWay(name));
  if (elements < 1 || repeats < 1)
    return absl::InvalidArgumentError("nothing to reduce");
  std::vector<double> seconds(static_cast<size_t>(repeats));
  const Tensor flat = Tensor::Empty({elements}, {.device = device_});
  RETURN_IF_ERROR(Together([&]() -> absl::Status {
    double first = 0;  // untimed: makes connections and buffers
    RETURN_IF_ERROR(TimeOnce(flat, way, first));
    for (double& each : seconds) RETURN_IF_ERROR(TimeOnce(flat, way, each));
    return absl::OkStatus();
  }));
  const int n = group_->size();
  const Tensor expected = Tensor::Full({elements}, n * (n + 1) / 2);
  if (!ops::BitEqual(flat.To(Device::Cpu()), expected))
    return absl::DataLossError(absl::StrCat(name, " gave wrong sums"));
  const auto middle = seconds.begin() + repeats / 2;
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

}  // namespace baton::examples
