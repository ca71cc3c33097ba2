// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/recordings.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace baton::nn {
namespace {

class Counted {
 public:
  explicit Counted(const RecordingOptions& options) : recordings_(options) {}
  bool Recorded(const std::string& kind,
                const std::vector<Variable>& parameters = {}) {
    return recordings_.For(kind, parameters, [&] {
      ++made_;
      return std::make_shared<int>(0);
    }) != nullptr;
  }
  int made() const { return made_; }

 private:
  Recordings<int> recordings_;
  int made_ = 0;
};

TEST(Recordings, AreMadeAfterTheWarmUpAndOnce) {
  Counted counted({.warm_up = 2});
  EXPECT_FALSE(counted.Recorded("a"));
  EXPECT_FALSE(counted.Recorded("a"));
  EXPECT_TRUE(counted.Recorded("a"));
  EXPECT_TRUE(counted.Recorded("a"));
  EXPECT_EQ(counted.made(), 1);
}

TEST(Recordings, TheFirstKindsToBeWarmAreRecorded) {
  Counted counted({.warm_up = 1, .kinds = 2});
  counted.Recorded("odd one out");
  for (const char* kind : {"a", "b"}) {
    EXPECT_FALSE(counted.Recorded(kind));
    EXPECT_TRUE(counted.Recorded(kind));
  }
  EXPECT_FALSE(counted.Recorded("odd one out"));
  EXPECT_EQ(counted.made(), 2);
}

TEST(Recordings, ManyKindsDoNotKeepOneFromBeingWarm) {
  Counted counted({.warm_up = 2});
  for (int i = 0; i < 1000; ++i) counted.Recorded(absl::StrCat("rare ", i));
  counted.Recorded("a");
  counted.Recorded("a");
  EXPECT_TRUE(counted.Recorded("a"));
}

TEST(Recordings, ParametersThatMovedStartAnew) {
  Counted counted({.warm_up = 1});
  Variable moved(Tensor::Ones({2}), true);
  const std::vector<Variable> parameters = {Variable(Tensor::Ones({2})), moved};
  counted.Recorded("a", parameters);
  EXPECT_TRUE(counted.Recorded("a", parameters));
  moved.tensor().Fill(3);
  EXPECT_TRUE(counted.Recorded("a", parameters));
  moved.set_tensor(Tensor::Ones({2}));
  EXPECT_FALSE(counted.Recorded("a", parameters));
  EXPECT_TRUE(counted.Recorded("a", parameters));
  EXPECT_EQ(counted.made(), 2);
}

TEST(Recordings, KindsDifferByShapeOrderAndDType) {
  const Tensor x = Tensor::Zeros({2, 3});
  EXPECT_EQ(KindOf({x}), KindOf({Tensor::Ones({2, 3})}));
  EXPECT_NE(KindOf({x}), KindOf({Tensor::Zeros({3, 2})}));
  EXPECT_NE(KindOf({x}), KindOf({Tensor::Zeros({3, 2}).Transpose(0, 1)}));
  EXPECT_NE(KindOf({x}), KindOf({x.To(DType::kF64)}));
  EXPECT_NE(KindOf({x}), KindOf({x, x}));
  EXPECT_NE(KindOf({x}), KindOf({Tensor()}));
}

}  // namespace
}  // namespace baton::nn
