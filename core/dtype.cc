// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/dtype.h"

#include <array>

namespace baton {
namespace {

struct DTypeEntry {
  const char* name;
  size_t size;
  bool floating;
};

// Indexed by the value of DType.
constexpr std::array<DTypeEntry, 8> kEntries = {{{"f32", 4, true},
                                                 {"f64", 8, true},
                                                 {"f16", 2, true},
                                                 {"bf16", 2, true},
                                                 {"i32", 4, false},
                                                 {"i64", 8, false},
                                                 {"u8", 1, false},
                                                 {"bool", 1, false}}};

const DTypeEntry& EntryOf(DType dtype) {
  return kEntries[static_cast<size_t>(dtype)];
}

}  // namespace

size_t SizeOf(DType dtype) { return EntryOf(dtype).size; }
const char* Name(DType dtype) { return EntryOf(dtype).name; }
bool IsFloating(DType dtype) { return EntryOf(dtype).floating; }

bool IsHalf(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16;
}

std::optional<DType> DTypeFromName(const std::string& name) {
  for (size_t i = 0; i < kEntries.size(); ++i) {
    if (name == kEntries[i].name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::optional<DType> DTypeFromWire(int value) {
  if (value < 0 || value >= static_cast<int>(kEntries.size())) {
    return std::nullopt;
  }
  return static_cast<DType>(value);
}

}  // namespace baton
