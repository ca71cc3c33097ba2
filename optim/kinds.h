// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <tuple>

#include "optim/adadelta.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/adamax.h"
#include "optim/rmsprop.h"
#include "optim/rprop.h"
#include "optim/sgd.h"
#include "optim/sparse_adam.h"

namespace baton::optim {

// An optimizer and its command-line name.
template <typename O>
struct Kind {
  using Optimizer = O;
  const char* name;
};

// All optimizers. Listing one here makes it known to every worker's registry
// and to the programs that choose by name.
inline constexpr std::tuple kKinds{
    Kind<Sgd>{"sgd"},           Kind<Adam>{"adam"},
    Kind<AdamW>{"adamw"},       Kind<Adagrad>{"adagrad"},
    Kind<RmsProp>{"rmsprop"},   Kind<SparseAdam>{"sparse-adam"},
    Kind<Adadelta>{"adadelta"}, Kind<Adamax>{"adamax"},
    Kind<Rprop>{"rprop"}};

// Calls fn(kind) for each kind.
template <typename Fn>
constexpr void ForEachKind(Fn fn) {
  std::apply([&](const auto&... kind) { (fn(kind), ...); }, kKinds);
}

}  // namespace baton::optim
