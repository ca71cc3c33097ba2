// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>

namespace baton::tools {

// The name of a type or method as its user writes it: template arguments lose
// their namespaces, and the class behind optim::Sgd is called Sgd.
//   "LocalOptimizer<baton::optim::RuleOptimizer<baton::ops::SgdRule> >::Step"
// becomes "LocalOptimizer<Sgd>::Step".
std::string ShownName(std::string_view name);

}  // namespace baton::tools
