// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A worker in a process of its own that trains a replica of a model until its
// group breaks, and goes on with those that are left:
//   replica_member NAME RENDEZVOUS WORLD_SIZE KIND NUMBER
// KIND is plain, zero (the optimizer's state is divided), join (the first one
// has fewer steps than the others, and joins) or norms (batch norms are
// synchronised).
// Writes "running" once some steps are done, "broken STATUS" when the group is,
// then "mean VALUE of SIZE" of the survivors' gradients, which are their
// NUMBERs, and ends when its input does.

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/status.h"
#include "models/distributed/data_parallel/data_parallel.h"
#include "models/distributed/data_parallel/sync_batch_norm.h"
#include "models/nn/batch_norm.h"
#include "optim/sgd.h"
#include "tests/support/join_member.h"

namespace {

using baton::Tensor;
using baton::Variable;
using baton::dist::DataParallel;
using baton::rpc::ProcessGroup;

constexpr int kParameters = 8, kRounds = 5;

// The gradient of each element is the number that Loss is given.
class Slopes final : public baton::nn::Module {
 public:
  explicit Slopes(bool norms = false) {
    if (norms) norm_ = &MakeModule<baton::nn::BatchNorm2d>("norm", 3);
    for (int i = 0; i < kParameters; ++i)
      RegisterParameter(absl::StrCat("weight", i), Tensor::Ones({100'000}));
  }
  Variable Loss(double number) {
    Variable sum;
    if (norm_ != nullptr)
      sum = baton::autograd::Sum((*norm_)(Tensor::Ones({2, 3, 4, 4})));
    for (const Variable& each : Parameters()) {
      const Variable part = baton::autograd::Sum(each);
      sum = sum.defined() ? baton::autograd::Add(sum, part) : part;
    }
    return baton::autograd::MulScalar(sum, number);
  }

 private:
  baton::nn::BatchNorm2d* norm_ = nullptr;
};

// As far as it comes; then why it broke.
absl::Status TrainUntilBroken(const std::shared_ptr<ProcessGroup>& group,
                              const std::string& kind, double number) {
  Slopes model(kind == "norms");
  if (kind == "norms") baton::dist::SynchroniseBatchNorms(model, group);
  const bool zero = kind == "zero", join = kind == "join";
  ASSIGN_OR_RETURN(const auto parallel,
                   DataParallel::Make(model, group,
                                      {.buckets = {400'000, 800'000},
                                       .uneven_inputs = join,
                                       .shard_optimizer = zero}));
  baton::optim::Sgd sgd(zero ? parallel->shards() : model.Parameters(),
                        {.lr = 0.001});
  for (int round = 0;; ++round) {
    sgd.ZeroGrad();
    RETURN_IF_ERROR(parallel->Backward(model.Loss(number)));
    sgd.Step();
    if (zero) RETURN_IF_ERROR(parallel->GatherParameters());
    if (round == kRounds) std::cout << "running" << std::endl;
    if (join && round == kRounds && group->rank() == 0) return parallel->Join();
  }
}

absl::Status GoOn(ProcessGroup& broken, double number) {
  ASSIGN_OR_RETURN(auto group, broken.Shrink().Await());
  const int size = group->size();
  Slopes model;
  ASSIGN_OR_RETURN(const auto parallel,
                   DataParallel::Make(model, std::move(group)));
  RETURN_IF_ERROR(parallel->Backward(model.Loss(number)));
  std::cout << "mean " << model.Parameters().back().grad().data<float>()[99'999]
            << " of " << size << std::endl;
  return absl::OkStatus();
}

absl::Status Run(char** argv) {
  ASSIGN_OR_RETURN(const auto agent, baton::testing::JoinAsMember(argv));
  ASSIGN_OR_RETURN(const auto group, ProcessGroup::Make(*agent).Await());
  const double number = std::atof(argv[5]);
  // A batch norm throws.
  const absl::Status why = baton::CatchErrors(
      [&] { return TrainUntilBroken(group, argv[4], number); });
  std::cout << "broken " << why << std::endl;
  RETURN_IF_ERROR(GoOn(*group, number));
  while (std::getchar() != EOF) {
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const absl::Status status = baton::CatchErrors([&] { return Run(argv); });
  if (!status.ok()) std::cout << status << std::endl;
  return status.ok() ? 0 : 1;
}
