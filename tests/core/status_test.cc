// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/status.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "core/device.h"
#include "core/dtype.h"
#include "core/shape.h"

namespace baton {
namespace {

TEST(Error, LeadsWithTheOp) {
  try {
    Require(false, "conv2d", "expected ", 4, " dims");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[conv2d] expected 4 dims");
    EXPECT_EQ(error.status(),
              absl::InvalidArgumentError("[conv2d] expected 4 dims"));
  }
}

TEST(CatchErrors, TurnsEveryExceptionIntoAStatus) {
  EXPECT_TRUE(CatchErrors([] {}).ok());
  EXPECT_EQ(CatchErrors([] { return absl::StatusOr<int>(3); }).value(), 3);
  EXPECT_EQ(CatchErrors([] { throw std::bad_alloc(); }),
            absl::ResourceExhaustedError("out of memory"));
  EXPECT_EQ(CatchErrors([] { throw std::runtime_error("why"); }),
            absl::InternalError("why"));
  EXPECT_EQ(CatchErrors([]() -> absl::Status { throw 3; }),
            absl::InternalError("unknown exception"));
  EXPECT_EQ(
      CatchErrors([]() -> absl::StatusOr<int> { Fail("op", "x"); }).status(),
      absl::InvalidArgumentError("[op] x"));
  EXPECT_EQ(CatchErrors([] {
              (void)absl::StatusOr<int>(absl::AbortedError("a")).value();
            }),
            absl::AbortedError("a"));
}

TEST(Annotate, PutsTheContextInFront) {
  EXPECT_EQ(Annotate(absl::NotFoundError("b"), "a"),
            absl::NotFoundError("a: b"));
  EXPECT_TRUE(Annotate(absl::OkStatus(), "a").ok());
}

TEST(Device, ParsesWhatItPrints) {
  for (const char* text : {"cpu", "cuda:0", "cuda:7"}) {
    EXPECT_EQ(Device::Parse(text)->ToString(), text);
  }
  EXPECT_EQ(*Device::Parse("cuda"), Device::Cuda(0));
  for (const char* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:x", "cuda:1 ",
                           "cuda:99999999999", "cpu:0"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Device::Parse(text).status())) << text;
  }
}

TEST(DType, NamesAndWireValuesRoundTrip) {
  for (int value = 0; value < 8; ++value) {
    const DType dtype = DTypeFromWire(value).value();
    EXPECT_EQ(DTypeFromName(Name(dtype)), dtype);
  }
  EXPECT_FALSE(DTypeFromWire(8).has_value());
  EXPECT_FALSE(DTypeFromWire(-1).has_value());
  EXPECT_FALSE(DTypeFromName("f8").has_value());
}

TEST(Half, EveryValueSurvivesTheTripThroughFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    Half half;
    half.bits = static_cast<uint16_t>(bits);
    BFloat16 brain;
    brain.bits = static_cast<uint16_t>(bits);
    const auto wide = static_cast<float>(half);
    if (wide == wide) {
      ASSERT_EQ(Half(wide).bits, bits);
    } else {
      ASSERT_EQ(Half(wide).bits & 0x7c00, 0x7c00);
    }
    if ((bits & 0x7f80) != 0x7f80) {
      ASSERT_EQ(BFloat16(static_cast<float>(brain)).bits, bits);
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(static_cast<float>(Half(2049.f)), 2048.f);
  EXPECT_EQ(static_cast<float>(Half(2051.f)), 2052.f);
  EXPECT_EQ(static_cast<float>(Half(65519.f)), 65504.f);
  EXPECT_EQ(Half(65520.f).bits, 0x7c00);
  EXPECT_EQ(Half(-1e30f).bits, 0xfc00);
  EXPECT_EQ(Half(0x1p-25f).bits, 0);
  EXPECT_EQ(Half(0x1.8p-25f).bits, 1);
  EXPECT_EQ(static_cast<float>(BFloat16(257.f)), 256.f);
  EXPECT_EQ(static_cast<float>(BFloat16(259.f)), 260.f);
}

TEST(Shape, BroadcastsOrSaysWhyNot) {
  EXPECT_EQ(BroadcastShapes("op", {2, 1, 3}, {4, 1}), Shape({2, 4, 3}));
  EXPECT_EQ(BroadcastShapes("op", {0}, {1}), Shape({0}));
  EXPECT_THROW(BroadcastShapes("op", {2}, {3}), Error);
  EXPECT_THROW(NormalizeAxis("op", -3, 2), Error);
  EXPECT_EQ(NormalizeAxis("op", -2, 2), 0);
}

}  // namespace
}  // namespace baton
