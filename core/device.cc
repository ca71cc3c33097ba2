// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/device.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace baton {
namespace {
constexpr char kCudaPrefix[] = "cuda:";
constexpr size_t kCudaPrefixSize = sizeof(kCudaPrefix) - 1;
constexpr int kMaxIndex = 255;
}  // namespace

absl::StatusOr<Device> Device::Parse(const std::string& text) {
  if (text == "cpu") return Cpu();
  if (text == "cuda") return Cuda(0);
  if (text.compare(0, kCudaPrefixSize, kCudaPrefix) == 0) {
    const std::string digits = text.substr(kCudaPrefixSize);
    int index = 0;
    if (digits.find_first_not_of("0123456789") == std::string::npos &&
        absl::SimpleAtoi(digits, &index) && index <= kMaxIndex) {
      return Cuda(index);
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "device \"", text, "\" is none of \"cpu\", \"cuda\" and \"cuda:0\" to ",
      "\"cuda:", kMaxIndex, "\""));
}

std::string Device::ToString() const {
  return is_cpu() ? "cpu" : absl::StrCat(kCudaPrefix, index_);
}

}  // namespace baton
