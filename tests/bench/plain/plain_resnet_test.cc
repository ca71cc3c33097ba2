// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/plain/plain_resnet.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/random.h"
#include "models/nn/loss.h"
#include "models/resnet.h"
#include "tests/support/named.h"

namespace baton::bench {
namespace {

constexpr int64_t kClasses = 5, kWidth = 4, kRows = 3;

using NamedFormat = testing::Named<MemoryFormat>;

class PlainResNet : public ::testing::TestWithParam<NamedFormat> {
 protected:
  void SetUp() override {
    auto made =
        models::ResNet::Make({.num_classes = kClasses, .width = kWidth});
    fused_ = std::move(made.value());
    plain_ = std::make_unique<PlainResNet50>(kClasses, kWidth, generator_);
    ASSERT_TRUE(plain_->LoadStateDict(fused_->StateDict()).ok());
    plain_->ToFormat(GetParam().value);
    // In f32 what rounding does to a ReLU near 0 hides what else differs.
    for (nn::Module* model : {fused_.get(), plain_.get()})
      model->To(DType::kF64);
  }

  Generator generator_{3};
  std::unique_ptr<nn::Module> fused_, plain_;
};

TEST_P(PlainResNet, IsTheNetworkThatModelsHave) {
  const Tensor images =
      RandNormal({kRows, 3, 32, 32}, generator_).To(DType::kF64);
  const Tensor target =
      ops::OneHot(RandInt(0, kClasses, {kRows}, generator_), kClasses)
          .To(DType::kF64);
  const auto train = [&](nn::Module& model, const Tensor& x) {
    const Variable loss = nn::MseLoss(model.Forward(x), target);
    loss.Backward();
    return loss.tensor().Item();
  };
  const double loss = train(*fused_, images);
  EXPECT_NEAR(train(*plain_, images.Contiguous(GetParam().value)), loss,
              1e-5 * loss);
  const auto expected = fused_->NamedParameters();
  const auto found = plain_->NamedParameters();
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].name, expected[i].name);
    EXPECT_TRUE(ops::AllClose(found[i].value.grad(), expected[i].value.grad(),
                              1e-6, 1e-9))
        << found[i].name;
  }
  // Running statistics too.
  const nn::StateMap state = fused_->StateDict();
  for (const auto& [name, buffer] : plain_->NamedBuffers())
    EXPECT_TRUE(ops::AllClose(buffer, state.at(name), 1e-6, 1e-9)) << name;
}

INSTANTIATE_TEST_SUITE_P(
    Formats, PlainResNet,
    ::testing::Values(NamedFormat{"Contiguous", MemoryFormat::kContiguous},
                      NamedFormat{"ChannelsLast", MemoryFormat::kChannelsLast}),
    ::testing::PrintToStringParamName());

}  // namespace
}  // namespace baton::bench
