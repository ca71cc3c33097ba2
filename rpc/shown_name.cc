// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/shown_name.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"

namespace baton::rpc {
namespace {

// "RuleOptimizer<SgdRule>" and "RuleOptimizer<SgdOptions>" -> "Sgd", wherever
// they stand.
void NameOptimizers(std::string& name) {
  constexpr std::string_view kBefore = "RuleOptimizer<";
  for (size_t at = 0; (at = name.find(kBefore, at)) != std::string::npos;) {
    const size_t begin = at + kBefore.size();
    const size_t end = name.find('>', begin);
    if (end == std::string::npos) return;
    const std::string rule = name.substr(begin, end - begin);
    const size_t suffix =
        std::max(absl::EndsWith(rule, "Rule") ? sizeof("Rule") - 1 : 0,
                 absl::EndsWith(rule, "Options") ? sizeof("Options") - 1 : 0);
    if (suffix == 0) {
      at = end;
      continue;
    }
    name.replace(at, end + 1 - at, rule, 0, rule.size() - suffix);
  }
}

}  // namespace

std::string ShownName(std::string_view name) {
  std::string shown;
  size_t word = 0;  // where what may be a namespace begins
  int brackets = 0, parentheses = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (brackets > 0 && name.substr(i, 2) == "::") {
      shown.resize(word);
      ++i;
      continue;
    }
    if (c == ' ' && name.substr(i, 2) == " >") continue;
    if (c == '<') ++brackets;
    if (c == '>') --brackets;
    // clang names no namespace "(anonymous namespace)".
    if (c == '(') ++parentheses;
    if (c == ')') --parentheses;
    shown += c;
    if (parentheses == 0 && (c == '<' || c == ',' || c == ' '))
      word = shown.size();
  }
  NameOptimizers(shown);
  return absl::StrReplaceAll(shown, {{"basic_string<char>", "string"}});
}

}  // namespace baton::rpc
