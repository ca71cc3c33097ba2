// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/compute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ComputeWords, NameADeviceADTypeAndDeterminism) {
  EXPECT_EQ(*ComputeOf("cuda:1", "bf16", true),
            (rpc::Compute{Device::Cuda(1), DType::kBF16, false, true}));
  EXPECT_EQ(*ComputeOf("cpu", "fp32", false), rpc::Compute{});
  for (const char* dtype : {"fp32", "tf32", "bf16", "fp16"})
    EXPECT_EQ(DTypeFlag(*ComputeOf("cuda", dtype, false)), dtype);
}

TEST(ComputeWords, ThatAreWrongNameTheirFlag) {
  const auto why = [](const char* device, const char* dtype) {
    const absl::Status status = ComputeOf(device, dtype, false).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(why("tpu", "fp32"), HasSubstr("--device"));
  EXPECT_EQ(why("cuda", "int8"),
            "--dtype takes fp32, tf32, bf16 or fp16, not 'int8'");
  EXPECT_EQ(why("cpu", "bf16"), "--dtype bf16 needs --device=cuda");
}

TEST(DealDevices, GivesWorkersTheGpusInTurn) {
  EXPECT_THAT(*DealDevices("cuda", 3, 2),
              ElementsAre("cuda:0", "cuda:1", "cuda:0"));
  EXPECT_THAT(*DealDevices("cuda", 2, 8), ElementsAre("cuda:0", "cuda:1"));
  EXPECT_THAT(*DealDevices("cuda:1", 2, 2), ElementsAre("cuda:1", "cuda:1"));
  EXPECT_THAT(*DealDevices("cuda:3,cpu", 3, 0),
              ElementsAre("cuda:3", "cpu", "cuda:3"));
  EXPECT_THAT(*DealDevices("cpu,cuda", 3, 2),
              ElementsAre("cpu", "cuda:0", "cuda:1"));
}

TEST(DealDevices, SaysWhatIsWrongOrMissing) {
  const absl::Status none = DealDevices("cuda", 2, 0).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(none));
  EXPECT_THAT(std::string(none.message()),
              AllOf(HasSubstr("--device=cuda: "), HasSubstr("--device=cpu")));
  EXPECT_TRUE(absl::IsInvalidArgument(DealDevices("cuda:0,", 2, 2).status()));
}

}  // namespace
}  // namespace baton::tools
