// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/random.h"
#include "models/distributed/device_pipeline.h"
#include "models/nn/linear.h"
#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

// What DevicePipeline says of options and batches that do not fit.
namespace baton::dist {
namespace {

using ::testing::HasSubstr;

DevicePipeline MakeWithOptions(int stages,
                               const DevicePipelineOptions& options) {
  Generator generator(1);
  std::vector<DeviceStage> made;
  for (int i = 0; i < stages; ++i)
    made.push_back(
        {std::make_shared<nn::Linear>(4, 4, generator), test::TestDevice()});
  return DevicePipeline(std::move(made), options);
}

std::string ErrorOfRows(const DevicePipelineOptions& options, int64_t inputs,
                        int64_t targets) {
  Generator generator(7);
  const Tensor images = RandNormal({inputs, 4}, generator);
  const Tensor labels = RandInt(0, 4, {targets}, generator);
  return test::ErrorOf(
      [&] { MakeWithOptions(1, options).Step(images, labels); });
}

TEST(DevicePipelineOptions, BadOnesAreNamed) {
  EXPECT_THAT(test::ErrorOf([] { DevicePipeline({}, {}); }),
              HasSubstr("no stages"));
  EXPECT_THAT(test::ErrorOf([] { MakeWithOptions(2, {.schedule = {"none"}}); }),
              HasSubstr("no schedule 'none'"));
  EXPECT_THAT(test::ErrorOf([] { MakeWithOptions(1, {.schedule = {"zb-v"}}); }),
              HasSubstr("two stages at each worker"));
  EXPECT_THAT(test::ErrorOf([] { MakeWithOptions(1, {.split_size = -1}); }),
              HasSubstr("split_size is negative"));
  EXPECT_THAT(test::ErrorOf([] { MakeWithOptions(1, {.at_once = 0}); }),
              HasSubstr("at_once is not positive"));
  EXPECT_THAT(test::ErrorOf([] { MakeWithOptions(1, {.loss = Loss::kNone}); }),
              HasSubstr("needs a loss"));
  EXPECT_THAT(test::ErrorOf([] {
                MakeWithOptions(1, {.split_size = 2, .micro_batches = {1, 3}});
              }),
              HasSubstr("split_size or micro_batches"));
}

TEST(DevicePipelineOptions, RowsThatDoNotFitAreNamed) {
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{1, 2}, {2, 3}, {4, 0}, {5, -1}}) {
    EXPECT_THAT(ErrorOfRows({.micro_batches = sizes}, 4, 4),
                HasSubstr("do not add up to 4"));
  }
  EXPECT_THAT(ErrorOfRows({}, 4, 3), HasSubstr("expected targets of 4 rows"));
}

}  // namespace
}  // namespace baton::dist
