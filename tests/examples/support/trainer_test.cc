// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace baton::examples {
namespace {

using testing::Fails;
using testing::IsOk;

rpc::WorkerInfo Worker(const std::string& name, const std::string& compute) {
  rpc::WorkerInfo worker;
  worker.name = name;
  worker.compute = rpc::Compute::Parse(compute).value();
  return worker;
}

TEST(CheckDType, RefusesADTypeThatIsTheTrainersAlone) {
  const auto bf16 = rpc::Compute::Parse("cuda:0 bf16").value();
  EXPECT_THAT(
      CheckDType(bf16, {Worker("worker1", "cuda:0 bf16"),
                        Worker("worker2", "cuda:1 tf32")}),
      Fails(absl::StatusCode::kInvalidArgument,
            "--dtype bf16 is the trainer's, which has no stage, and worker2 "
            "computes in tf32"));
  EXPECT_THAT(CheckDType(bf16, {Worker("worker1", "")}),
              Fails(absl::StatusCode::kInvalidArgument,
                    "baton-run --dtype=bf16 before the --"));
}

TEST(CheckDType, AcceptsWhatTheWorkersHaveAndSilence) {
  const std::vector<rpc::WorkerInfo> workers = {
      Worker("worker1", "cuda:0 tf32"), Worker("worker2", "cuda:1 tf32")};
  EXPECT_THAT(CheckDType(rpc::Compute::Parse("cuda:0 tf32").value(), workers),
              IsOk());
  EXPECT_THAT(CheckDType({}, workers), IsOk());
}

}  // namespace
}  // namespace baton::examples
