// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rpc/view.h"

// Tables (rpc::View) as people and programs read them.
namespace baton::tools {

// "1.4 MB", "512 B"; powers of 1000.
std::string FormatBytes(double bytes);
// "340 us", "12.5 ms", "3.20 s", "4m 05s", "2h 03m".
std::string FormatMilliseconds(double ms);

struct TableStyle {
  bool color = false;  // bold headings, for terminals
  int width = 0;       // lines are cut there; 0: never
};

// A heading with the number of rows, the columns' names in capitals, one line a
// row; numbers to the right. Empty cells show as "-". Control characters, which
// may come from other workers, show as '?'. A table without rows is one line.
std::string TableText(const rpc::View& table, const TableStyle& style = {});

// {"workers": [{"worker": "bob", "age": 12, ...}, ...], ...}: a list for each
// table; numbers as numbers (of ms and bytes), what is empty as null.
std::string TablesJson(const std::vector<rpc::View>& tables);

}  // namespace baton::tools
