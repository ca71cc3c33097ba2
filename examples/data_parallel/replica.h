// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "models/data/loader.h"
#include "models/distributed/data_parallel/data_parallel.h"
#include "models/distributed/data_parallel/model_averager.h"
#include "models/nn/graphed_step.h"
#include "models/resnet.h"
#include "optim/any.h"
#include "optim/grad_scaler.h"
#include "rpc/call_context.h"
#include "rpc/worker.h"

namespace baton::examples {

// What the replicas of a model do together. Plain data.
struct ReplicaTask {
  models::ResNetOptions model;
  optim::AnyOptions optimizer;
  std::vector<std::string> members;  // workers, one replica each
  std::string data;                  // images; empty: random ones, drawn once
  int64_t batch = 32;                // images per step and replica
  int64_t image = 128;               // height and width of random images
  bool shard = false;  // each has a part of the optimizer's state (ZeRO-1)
  // If above 0, each replica steps by its own gradients, and the models are
  // averaged after this number of steps (ModelAverager). 0: gradients are
  // averaged.
  int64_t average_every = 0;
  bool gossip = false;  // average with one other replica at a time
  bool half = false;    // gradients are sent in bf16
  int64_t bucket = int64_t{25} << 20;  // bytes of gradients in a bucket
  int power_sgd_rank = 0;              // DataParallelOptions::power_sgd_rank
  bool together = false;               // SynchroniseBatchNorms
  bool graph = true;                   // on GPUs: record and replay steps
  uint64_t seed = 0;             // for the order of images, or random images
  int64_t timeout_ms = 300'000;  // for calls among the replicas

  static constexpr auto Fields() {
    using T = ReplicaTask;
    return std::tuple{
        &T::model,    &T::optimizer, &T::members, &T::data,
        &T::batch,    &T::image,     &T::shard,   &T::average_every,
        &T::gossip,   &T::half,      &T::bucket,  &T::power_sgd_rank,
        &T::together, &T::graph,     &T::seed,    &T::timeout_ms};
  }
};

// The results of some steps of one replica. Plain data.
struct ReplicaSteps {
  std::vector<double> losses;  // before each step, on its own images
  double seconds = 0;          // per step, as are the fields below
  double waited_s = 0;         // for the others' gradients, after backward
  int64_t bytes = 0;           // of gradients
  int64_t state_bytes = 0;     // of the optimizer's state
  int64_t kernels = 0;         // of a recorded step

  static constexpr auto Fields() {
    using S = ReplicaSteps;
    return std::tuple{&S::losses, &S::seconds,     &S::waited_s,
                      &S::bytes,  &S::state_bytes, &S::kernels};
  }
};

// A ResNet at one worker that is trained as one of several replicas, each on
// its share of the images, on the device and in the dtype that the worker has
// declared. Calls come one at a time, and every call is made at all replicas.
class Replica {
 public:
  // Waits until the other replicas have been made.
  static absl::StatusOr<std::unique_ptr<Replica>> Make(rpc::CallContext& call,
                                                       const ReplicaTask& task);
  // Takes `count` steps; returns when the last one has ended.
  absl::StatusOr<ReplicaSteps> Step(int64_t count);
  // Returns the sum of all elements of all parameters, which is the same at all
  // replicas: if they differ, their models are averaged first.
  absl::StatusOr<double> Checksum();

  using Exports =
      rpc::Methods<&Replica::Make, &Replica::Step, &Replica::Checksum>;

 private:
  Replica() = default;
  absl::Status Prepare(rpc::CallContext& call, const ReplicaTask& task);
  absl::Status OpenImages(const ReplicaTask& task, int rank, int ranks);
  absl::StatusOr<data::Batch> NextBatch();
  void PrepareStep();
  // Both return the loss and throw Error.
  Variable Forward(const Tensor& images, const Tensor& labels);
  Tensor Train(const Tensor& images, const Tensor& labels);

  ReplicaTask task_;
  rpc::Compute compute_;
  std::shared_ptr<rpc::ProcessGroup> group_;
  std::unique_ptr<models::ResNet> model_;
  std::unique_ptr<dist::DataParallel> parallel_;
  std::unique_ptr<dist::ModelAverager>
      averager_;  // null: gradients are reduced
  std::unique_ptr<optim::Any> optimizer_;
  std::unique_ptr<optim::GradScaler> scaler_;  // for f16
  std::unique_ptr<nn::GraphedStep> step_;      // null: none is recorded
  std::unique_ptr<data::Loader> loader_;       // null: the images below
  data::Batch images_;
};

}  // namespace baton::examples
