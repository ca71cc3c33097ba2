// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>

namespace baton::rpc {

// What users read for a name of rpc/type_name.h: template arguments lose their
// namespaces, the class behind optim::Sgd is called Sgd, and std::string is
// called string.
//   "LocalOptimizer<baton::optim::RuleOptimizer<baton::ops::SgdRule> >::Step"
// becomes "LocalOptimizer<Sgd>::Step". Text around names stays as it is.
std::string ShownName(std::string_view name);

}  // namespace baton::rpc
