// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/random.h"
#include "examples/data_parallel/by_hand.h"
#include "examples/support/digits.h"
#include "models/lenet.h"
#include "optim/any.h"
#include "rpc/call_context.h"
#include "rpc/registry.h"

namespace baton::examples {

// What all devices of a LeNet do. Plain data.
struct LeNetDevicesTask {
  std::vector<std::string> members;  // workers, each with a device of its own
  std::string data;                  // that the first of them reads
  int64_t batch = 64;                // of all devices together
  optim::AnyOptions optimizer;
  std::string all_reduce = "ring";  // by_hand.h has the ways
  uint64_t seed = 1;                // of weights and order of the images
  int64_t timeout_ms = 60'000;      // of what they do together

  static constexpr auto Fields() {
    using T = LeNetDevicesTask;
    return std::tuple{&T::members,    &T::data, &T::batch,     &T::optimizer,
                      &T::all_reduce, &T::seed, &T::timeout_ms};
  }
};

// The same at all devices but for the times. Plain data.
struct LeNetEpoch {
  double loss = 0;  // mean of its batches
  int64_t images = 0;
  double seconds = 0;
  double reducing_s = 0;  // within AllReduce
  double checksum = 0;    // of all parameters

  static constexpr auto Fields() {
    using E = LeNetEpoch;
    return std::tuple{&E::loss, &E::images, &E::seconds, &E::reducing_s,
                      &E::checksum};
  }
};

// One device's part in training a LeNet data-parallel, with all that is between
// the devices done by hand (by_hand.h). Lives at the worker that has the
// device. Calls come one at a time, and at all of them.
class LeNetDevice {
 public:
  // Waits for those of the other members.
  static absl::StatusOr<std::unique_ptr<LeNetDevice>> Make(
      rpc::CallContext& call, const LeNetDevicesTask& task);

  // All training images once, but for what is no whole batch.
  absl::StatusOr<LeNetEpoch> TrainEpoch();
  // The share of all held-out images that the model gives their label, each
  // device examining a part of them.
  absl::StatusOr<double> Accuracy();
  // Seconds of an all-reduce of so many f32 elements, the median of some.
  // DataLoss where the sums are wrong.
  absl::StatusOr<double> TimeAllReduce(int64_t elements, const std::string& way,
                                       int64_t repeats);

  using Exports =
      rpc::Methods<&LeNetDevice::Make, &LeNetDevice::TrainEpoch,
                   &LeNetDevice::Accuracy, &LeNetDevice::TimeAllReduce>;

 private:
  LeNetDevice(const LeNetDevicesTask& task, AllReduceWay way, Device device,
              std::shared_ptr<rpc::ProcessGroup> group);
  // What goes wrong here is told the others, who would wait for it.
  absl::Status Together(const std::function<absl::Status()>& fn);
  absl::StatusOr<std::vector<Digits>> NextParts();
  absl::Status Step(const BatchPart& part, LeNetEpoch& epoch);
  absl::Status Train(LeNetEpoch& epoch);
  absl::Status Examine(double& accuracy);
  absl::Status TimeOnce(const Tensor& flat, AllReduceWay way, double& seconds);

  const LeNetDevicesTask task_;
  const AllReduceWay way_;
  const Device device_;
  const std::shared_ptr<rpc::ProcessGroup> group_;
  Generator generator_;
  models::LeNet model_;
  std::optional<optim::Any> optimizer_;
  SplitDigits digits_;  // of the first device; the others have none
  std::vector<int64_t> order_;
  size_t place_ = 0;  // in it
  uint64_t epoch_ = 0;
};

}  // namespace baton::examples
