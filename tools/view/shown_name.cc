// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/view/shown_name.h"

#include <cstddef>

namespace baton::tools {
namespace {

// "RuleOptimizer<SgdRule>" -> "Sgd", wherever it stands.
void NameOptimizers(std::string& name) {
  constexpr std::string_view kBefore = "RuleOptimizer<", kAfter = "Rule>";
  for (size_t at = 0; (at = name.find(kBefore, at)) != std::string::npos;) {
    const size_t end = name.find(kAfter, at + kBefore.size());
    if (end == std::string::npos) return;
    name.erase(end, kAfter.size());
    name.erase(at, kBefore.size());
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
  return shown;
}

}  // namespace baton::tools
