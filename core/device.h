// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace baton {

// The device of a tensor's memory. Value type.
class Device {
 public:
  enum class Kind : uint8_t { kCpu = 0, kCuda = 1 };

  constexpr Device() = default;
  static constexpr Device Cpu() { return Device(); }
  static constexpr Device Cuda(int index) { return Device(Kind::kCuda, index); }
  // Parses "cpu", "cuda" or "cuda:1"; otherwise InvalidArgument says what is
  // wrong.
  static absl::StatusOr<Device> Parse(const std::string& text);

  constexpr Kind kind() const { return kind_; }
  constexpr int index() const { return index_; }
  constexpr bool is_cpu() const { return kind_ == Kind::kCpu; }
  constexpr bool is_cuda() const { return kind_ == Kind::kCuda; }
  std::string ToString() const;
  friend constexpr bool operator==(Device, Device) = default;

 private:
  constexpr Device(Kind kind, int index) : kind_(kind), index_(index) {}
  Kind kind_ = Kind::kCpu;
  int index_ = 0;
};

}  // namespace baton
