// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/view/table.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace baton::tools {
namespace {

using rpc::View;
using Unit = View::Unit;

constexpr char kBold[] = "\033[1m", kPlain[] = "\033[0m";
constexpr char kBetween[] = "  ";

std::string CellText(const std::string& cell, Unit unit) {
  double number = 0;
  if (cell.empty()) return "-";
  if (unit == Unit::kBytes && absl::SimpleAtod(cell, &number))
    return FormatBytes(number);
  if (unit == Unit::kMilliseconds && absl::SimpleAtod(cell, &number))
    return FormatMilliseconds(number);
  std::string text = cell;
  for (char& c : text) {
    if (std::iscntrl(static_cast<unsigned char>(c))) c = '?';
  }
  return text;
}

std::string Heading(const std::string& name) {
  std::string heading = name;
  for (char& c : heading) {
    c = c == '_'
            ? ' '
            : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return heading;
}

std::string Line(const std::vector<std::string>& cells,
                 const std::vector<size_t>& widths, const View& table,
                 int limit) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += kBetween;
    const std::string space(widths[i] - cells[i].size(), ' ');
    const bool right = table.columns[i].unit != Unit::kText;
    line += right ? space + cells[i] : cells[i] + space;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  if (limit > 0) line.resize(std::min(line.size(), static_cast<size_t>(limit)));
  return line;
}

nlohmann::ordered_json CellJson(const std::string& cell, Unit unit) {
  if (cell.empty() && unit != Unit::kText) return nullptr;
  int64_t whole = 0;
  double number = 0;
  if (unit != Unit::kText && absl::SimpleAtoi(cell, &whole)) return whole;
  if (unit != Unit::kText && absl::SimpleAtod(cell, &number)) return number;
  return cell;
}

}  // namespace

std::string FormatBytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < std::size(kUnits)) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 ? absl::StrFormat("%.0f B", bytes)
                   : absl::StrFormat("%.3g %s", bytes, kUnits[unit]);
}

std::string FormatMilliseconds(double ms) {
  if (ms <= 0) return "0 ms";
  if (ms < 1) return absl::StrFormat("%.0f us", ms * 1e3);
  if (ms < 1e3) return absl::StrFormat("%.3g ms", ms);
  if (ms < 60e3) return absl::StrFormat("%.3g s", ms / 1e3);
  const auto seconds = static_cast<int64_t>(ms / 1e3);
  if (seconds < 3600)
    return absl::StrFormat("%dm %02ds", seconds / 60, seconds % 60);
  return absl::StrFormat("%dh %02dm", seconds / 3600, seconds / 60 % 60);
}

std::string TableText(const View& table, const TableStyle& style) {
  std::string title = absl::StrCat(
      style.color ? kBold : "", table.name, style.color ? kPlain : "", ": ",
      table.rows.empty() ? "none" : absl::StrCat(table.rows.size()), "\n");
  if (table.rows.empty()) return title;
  std::vector<std::vector<std::string>> lines(1);
  for (const auto& column : table.columns)
    lines[0].push_back(Heading(column.name));
  for (const auto& row : table.rows) {
    std::vector<std::string>& line = lines.emplace_back();
    for (size_t i = 0; i < table.columns.size(); ++i) {
      line.push_back(
          CellText(i < row.size() ? row[i] : "", table.columns[i].unit));
    }
  }
  std::vector<size_t> widths(table.columns.size());
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text = title;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string line = Line(lines[i], widths, table, style.width);
    const bool bold = style.color && i == 0;
    absl::StrAppend(&text, bold ? kBold : "", line, bold ? kPlain : "", "\n");
  }
  return text;
}

std::string TablesJson(const std::vector<View>& tables) {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const View& table : tables) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const auto& row : table.rows) {
      nlohmann::ordered_json object = nlohmann::ordered_json::object();
      for (size_t i = 0; i < table.columns.size() && i < row.size(); ++i)
        object[table.columns[i].name] = CellJson(row[i], table.columns[i].unit);
      rows.push_back(std::move(object));
    }
    all[table.name] = std::move(rows);
  }
  using Json = nlohmann::ordered_json;
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace baton::tools
