// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/worker.h"

#include <vector>

#include "absl/strings/ascii.h"
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

absl::Status CheckWorkerName(const std::string& name) {
  if (name.empty()) return absl::InvalidArgumentError("empty worker name");
  if (name.size() > 127) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker name of ", name.size(),
                     " characters; at most 127 are allowed: ",
                     absl::CHexEscape(name.substr(0, 40)), "..."));
  }
  for (char c : name) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c))) continue;
    if (c == '-' || c == '_' || c == ':' || c == '.') continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "worker name \"", absl::CHexEscape(name),
        "\" has a character other than letters, digits, '-', '_', ':', '.'"));
  }
  return absl::OkStatus();
}

absl::Status CheckLease(std::chrono::milliseconds lease) {
  if (lease < kLeastLease) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a lease (--lease) of ", lease.count(), " ms is too short: workers ",
        "that are well would be given up; at least ", kLeastLease.count(),
        " ms are needed"));
  }
  if (lease > kMostLease) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the lease (--lease) is too long: at most ",
        kMostLease / std::chrono::hours(1), " hours are possible"));
  }
  return absl::OkStatus();
}

}  // namespace baton::rpc
