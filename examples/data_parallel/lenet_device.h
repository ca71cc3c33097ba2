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

// What the devices that train a LeNet do together. Plain data.
struct LeNetDevicesTask {
  std::vector<std::string> members;  // workers, each with a device of its own
  std::string data;                  // the first member reads it
  int64_t batch = 64;                // of all devices together
  optim::AnyOptions optimizer;
  std::string all_reduce = "ring";  // see by_hand.h
  uint64_t seed = 1;                // for weights and the order of the images
  int64_t timeout_ms = 60'000;      // for calls among the devices

  static constexpr auto Fields() {
    using T = LeNetDevicesTask;
    return std::tuple{&T::members,    &T::data, &T::batch,     &T::optimizer,
                      &T::all_reduce, &T::seed, &T::timeout_ms};
  }
};

// The results of an epoch. Except for times they are the same at all devices.
// Plain data.
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

// One device's part in training a LeNet data-parallel, where all communication
// is written by hand (by_hand.h). Lives at the worker that has the device.
// Calls come one at a time, and every call is made at all devices.
class LeNetDevice {
 public:
  // Waits until the other members have been made.
  static absl::StatusOr<std::unique_ptr<LeNetDevice>> Make(
      rpc::CallContext& call, const LeNetDevicesTask& task);

  // Trains on all training images once, except an incomplete last batch.
  absl::StatusOr<LeNetEpoch> TrainEpoch();
  // Returns the share of held-out images that the model classifies correctly;
  // each device examines some of them.
  absl::StatusOr<double> Accuracy();
  // Returns the median time of an all-reduce of `elements` f32 elements, in
  // seconds. DataLoss if a sum is wrong.
  absl::StatusOr<double> TimeAllReduce(int64_t elements, const std::string& way,
                                       int64_t repeats);

  using Exports =
      rpc::Methods<&LeNetDevice::Make, &LeNetDevice::TrainEpoch,
                   &LeNetDevice::Accuracy, &LeNetDevice::TimeAllReduce>;

 private:
  LeNetDevice(const LeNetDevicesTask& task, AllReduceWay way, Device device,
              std::shared_ptr<rpc::ProcessGroup> group);
  // Runs `fn`. If it fails, tells the other devices, which would otherwise
  // wait.
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
  SplitDigits digits_;  // at the first device; empty at the others
  std::vector<int64_t> order_;
  size_t place_ = 0;  // next index in order_
  uint64_t epoch_ = 0;
};

}  // namespace baton::examples
