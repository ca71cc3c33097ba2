// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/row_start.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/parallel.h"
#include "core/philox.h"

namespace baton::dist {
namespace {

constexpr int64_t kRowGrain = 1024;  // the number of rows for which another
                                     // thread pays

// Returns a value in [0, 1).
float UnitFloat(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24F;
}

void ToNormal(float& a, float& b) {
  const float radius = std::sqrt(-2 * std::log(1 - a));
  const float angle = 2 * std::numbers::pi_v<float> * b;
  a = radius * std::cos(angle);
  b = radius * std::sin(angle);
}

}  // namespace

void BeginRow(const RowTableOptions& table, int64_t key, float* value) {
  const auto scale = static_cast<float>(table.scale);
  const auto bits = static_cast<uint64_t>(key);
  for (int64_t begin = 0; begin < table.width; begin += 4) {
    std::array<float, 4> four{};
    if (table.start != RowStart::kZero) {
      const auto random = Philox(
          {static_cast<uint32_t>(begin / 4), 0, static_cast<uint32_t>(bits),
           static_cast<uint32_t>(bits >> 32)},
          {static_cast<uint32_t>(table.seed),
           static_cast<uint32_t>(table.seed >> 32)});
      for (size_t i = 0; i < 4; ++i) four[i] = UnitFloat(random[i]);
    }
    if (table.start == RowStart::kUniform) {
      for (float& x : four) x = scale * (2 * x - 1);
    } else if (table.start == RowStart::kNormal) {
      ToNormal(four[0], four[1]);
      ToNormal(four[2], four[3]);
      for (float& x : four) x *= scale;
    }
    const int64_t count = std::min<int64_t>(4, table.width - begin);
    std::copy_n(four.begin(), count, value + begin);
  }
}

Tensor BegunRows(const RowTableOptions& table, const Tensor& keys) {
  const Tensor rows = Tensor::Empty({keys.numel(), table.width});
  const int64_t* key = keys.data<int64_t>();
  ParallelFor(keys.numel(), kRowGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      BeginRow(table, key[i], rows.data<float>() + i * table.width);
  });
  return rows;
}

}  // namespace baton::dist
