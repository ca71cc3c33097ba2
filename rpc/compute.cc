// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/compute.h"

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status.h"

namespace baton::rpc {
namespace {

constexpr char kTf32[] = "tf32";
constexpr char kDeterministic[] = "deterministic";
constexpr size_t kLongest = 64;

bool Take(const std::string& word, Compute& compute) {
  for (DType dtype : {DType::kBF16, DType::kF16}) {
    if (word != Name(dtype)) continue;
    compute.dtype = dtype;
    return true;
  }
  if (word == kTf32) return compute.tf32 = true;
  if (word == kDeterministic) return compute.deterministic = true;
  return false;
}

}  // namespace

std::string Compute::ToString() const {
  std::string text = device.ToString();
  if (dtype != DType::kF32) absl::StrAppend(&text, " ", Name(dtype));
  if (tf32) absl::StrAppend(&text, " ", kTf32);
  if (deterministic) absl::StrAppend(&text, " ", kDeterministic);
  return text;
}

absl::StatusOr<Compute> Compute::Parse(const std::string& text) {
  Compute compute;
  if (text.empty()) return compute;
  const absl::Status wrong = absl::InvalidArgumentError(
      absl::StrCat("\"", absl::CHexEscape(text.substr(0, kLongest)),
                   "\" does not say how a worker computes"));
  if (text.size() > kLongest) return wrong;
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  const auto device = Device::Parse(words[0]);
  if (!device.ok()) return wrong;
  compute.device = *device;
  for (size_t i = 1; i < words.size(); ++i) {
    if (!Take(words[i], compute)) return wrong;
  }
  return compute;
}

}  // namespace baton::rpc
