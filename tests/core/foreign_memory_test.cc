// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/foreign_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/stream.h"
#include "tests/support/test_device.h"

// As DLPack's own header has them, written here a second time.
extern "C" {
struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
};
}

namespace baton {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Another library's array of 2 x 3 floats, and how often it was given back.
struct Other {
  Other() {
    managed.dl_tensor = {.data = values,
                         .device = {1, 0},
                         .ndim = 2,
                         .dtype = {2, 32, 1},
                         .shape = shape,
                         .strides = nullptr,
                         .byte_offset = 0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) {
      ++static_cast<Other*>(self->manager_ctx)->deleted;
    };
  }
  float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  int64_t shape[2] = {2, 3};
  int64_t strides[2] = {1, 2};
  int deleted = 0;
  DLManagedTensor managed{};
};

std::string Refusal(Other& other) {
  try {
    FromDlpack(&other.managed);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(FromMemory, IsTheCallersMemoryUntilTheLastTensorHasGone) {
  std::vector<float> values = {1, 2, 3, 4};
  int released = 0;
  Tensor x = FromMemory(values.data(), {2, 2}, DType::kF32,
                        [&released] { ++released; });
  Tensor row = x.Select(0, 1);
  x.Fill(7);
  EXPECT_THAT(values, ElementsAre(7, 7, 7, 7));
  x = Tensor();
  values[3] = 9;
  EXPECT_THAT(row.ToVector<float>(), ElementsAre(7, 9));
  EXPECT_EQ(released, 0);
  row = Tensor();
  EXPECT_EQ(released, 1);
}

TEST(FromMemory, RefusesWhatCannotBeReadAndLeavesItAlone) {
  alignas(8) char bytes[16] = {};
  int released = 0;
  const auto release = [&released] { ++released; };
  EXPECT_THROW(FromMemory(bytes + 1, {2}, DType::kF32, release), Error);
  EXPECT_THROW(FromMemory(nullptr, {2}, DType::kF32, release), Error);
  EXPECT_THROW(FromMemory(bytes, {2}, DType::kF32, nullptr), Error);
  EXPECT_EQ(released, 0);
  EXPECT_EQ(FromMemory(nullptr, {0, 3}, DType::kF32, release).numel(), 0);
  EXPECT_EQ(released, 1);
}

TEST(Dlpack, TakesAnothersArrayWithoutACopyAndGivesItBackOnce) {
  Other other;
  Tensor x = FromDlpack(&other.managed);
  EXPECT_EQ(x.shape(), Shape({2, 3}));
  EXPECT_EQ(x.raw_data(), other.values);
  EXPECT_THAT(x.ToVector<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  Tensor copy = x;
  x = Tensor();
  EXPECT_EQ(other.deleted, 0);
  copy.Fill(0);
  EXPECT_EQ(other.values[5], 0);
  copy = Tensor();
  EXPECT_EQ(other.deleted, 1);
}

TEST(Dlpack, FollowsStridesAndOffset) {
  Other other;
  other.managed.dl_tensor.strides = other.strides;
  other.managed.dl_tensor.byte_offset = 8;
  {
    const Tensor x = FromDlpack(&other.managed);
    EXPECT_THAT(x.ToVector<float>(), ElementsAre(3, 5, 7, 4, 6, 8));
  }
  EXPECT_EQ(other.deleted, 1);
}

TEST(Dlpack, RefusesWhatItHasNoTensorForAndLeavesTheDeleterToTheCaller) {
  const std::vector<std::pair<std::string, std::function<void(DLTensor&)>>>
      wrong = {
          {"4 lanes", [](DLTensor& t) { t.dtype.lanes = 4; }},
          {"code 5", [](DLTensor& t) { t.dtype.code = 5; }},
          {"device of kind 10", [](DLTensor& t) { t.device.device_type = 10; }},
          {"a dimension of -1", [](DLTensor& t) { t.shape[0] = -1; }},
          {"rank -2", [](DLTensor& t) { t.ndim = -2; }},
          {"no memory", [](DLTensor& t) { t.data = nullptr; }},
          {"not aligned", [](DLTensor& t) { t.byte_offset = 2; }},
          {"more elements",
           [](DLTensor& t) {
             t.shape[0] = t.shape[1] = std::numeric_limits<int64_t>::max();
           }},
      };
  for (const auto& [text, spoil] : wrong) {
    Other other;
    spoil(other.managed.dl_tensor);
    EXPECT_THAT(Refusal(other), HasSubstr(text));
    EXPECT_EQ(other.deleted, 0) << text;
  }
  Other other;
  other.strides[0] = -1;
  other.managed.dl_tensor.strides = other.strides;
  EXPECT_THAT(Refusal(other), HasSubstr("a stride of -1"));
}

// Both ways, each dtype, on the device of the test.
TEST(Dlpack, WhatIsExportedComesBackAsItWas) {
  const Device device = test::TestDevice();
  for (const DType dtype :
       {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI32,
        DType::kI64, DType::kU8, DType::kBool}) {
    const Tensor x = Tensor::Arange(6).To(dtype).Reshape({2, 3}).To(device);
    DLManagedTensor* exported = ToDlpack(x.Transpose(0, 1));
    EXPECT_EQ(exported->dl_tensor.device.device_type, device.is_cuda() ? 2 : 1);
    EXPECT_THAT(std::vector<int64_t>(exported->dl_tensor.strides,
                                     exported->dl_tensor.strides + 2),
                ElementsAre(1, 3));
    const Tensor back = FromDlpack(exported);
    EXPECT_EQ(back.dtype(), dtype);
    EXPECT_EQ(back.device(), device);
    EXPECT_EQ(back.raw_data(), x.raw_data());
    EXPECT_EQ(back.To(DType::kI64).ToVector<int64_t>(),
              x.Transpose(0, 1).To(DType::kI64).ToVector<int64_t>());
  }
}

TEST(Dlpack, AnExportKeepsTheMemoryUntilItsDeleterRuns) {
  const Device device = test::TestDevice();
  Tensor x = Tensor::Full({4}, 3).To(device);
  const std::weak_ptr<Storage> storage = x.storage();
  DLManagedTensor* exported = ToDlpack(x);
  x = Tensor();
  EXPECT_FALSE(storage.expired());
  exported->deleter(exported);
  EXPECT_TRUE(storage.expired());
  EXPECT_THROW(ToDlpack(Tensor()), Error);
  const Stream here = CurrentStream(test::TestDevice());
  EXPECT_THROW(ToDlpack(Tensor(), here), Error);
}

}  // namespace
}  // namespace baton
