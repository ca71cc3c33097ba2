// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rpc/view.h"

// Formats tables (rpc::View) for people and for programs.
namespace baton::tools {

// Returns "1.4 MB" or "512 B"; units are powers of 1000.
std::string FormatBytes(double bytes);
// Returns "340 us", "12.5 ms", "3.20 s", "4m 05s" or "2h 03m".
std::string FormatMilliseconds(double ms);

struct TableStyle {
  bool color = false;  // bold headings, for terminals
  int width = 0;       // lines are cut at this width; 0: never
};

// Returns a heading with the number of rows, the columns' names in capitals,
// and one line per row, with numbers aligned to the right. Empty cells are "-".
// Control characters, which may come from other workers, become '?'. A table
// without rows is one line.
std::string TableText(const rpc::View& table, const TableStyle& style = {});

// Returns {"workers": [{"worker": "bob", "age": 12, ...}, ...], ...}: a list
// for each table. Numbers, in ms and bytes, stay numbers; empty cells are null.
std::string TablesJson(const std::vector<rpc::View>& tables);

}  // namespace baton::tools
