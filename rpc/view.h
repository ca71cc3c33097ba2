// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace baton::rpc {

// A table about a worker that a layer above rpc provides or a tool prints.
// Plain data.
struct View {
  enum class Unit : uint8_t { kText, kCount, kBytes, kMilliseconds };
  struct Column {
    std::string name;  // also a JSON key: "made_at"
    Unit unit = Unit::kText;
    static constexpr auto Fields() {
      return std::tuple{&Column::name, &Column::unit};
    }
  };
  std::string name;  // "contexts"
  std::vector<Column> columns = {};
  // Each row has one cell per column. Numbers are decimal; unknown values are
  // empty.
  std::vector<std::vector<std::string>> rows = {};
  static constexpr auto Fields() {
    return std::tuple{&View::name, &View::columns, &View::rows};
  }
};

}  // namespace baton::rpc
