// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/ops/rnn.h"
#include "core/random.h"
#include "models/nn/module.h"

namespace baton::nn {

struct RnnOptions {
  int64_t layers = 1;
  bool bidirectional = false;
  bool bias = true;
  bool batch_first = false;  // x and y are [N, T, ...]; states are not
};

// The state that a recurrent module carries from one piece of a sequence to the
// next. Each tensor is [layers * D, N, hidden], where D is 2 if bidirectional,
// else 1. Undefined ones mean zeros; only the LSTM has `c`.
struct RnnState {
  Variable h, c;
};

// The base of LSTM and GRU. Parameters have PyTorch's names, order and shapes:
// "weight_ih_l0", "weight_hh_l0", "bias_ih_l0" and "bias_hh_l0" for each layer,
// with the suffix "_reverse" for the other direction. They are initialized
// uniformly in +-1 / sqrt(hidden). core/ops/rnn.h has the formulas.
// Thread-compatible.
class RecurrentModule : public Module {
 public:
  // x [T, N, in] -> [T, N, D * hidden], from a state of zeros.
  Variable Forward(const Variable& x) final { return Run(x, {}).y; }

  struct Output {
    Variable y;
    RnnState last;
  };
  Output Run(const Variable& x, const RnnState& first);

 protected:
  RecurrentModule(ops::RnnCell cell, int64_t in, int64_t hidden,
                  Generator& generator, const RnnOptions& options);

 private:
  const RnnOptions options_;
  const ops::RnnCell cell_;
  std::vector<const Variable*> weights_;  // null if there is no bias
};

class LSTM final : public RecurrentModule {
 public:
  LSTM(int64_t in, int64_t hidden, Generator& generator,
       const RnnOptions& options = {})
      : RecurrentModule(ops::RnnCell::kLstm, in, hidden, generator, options) {}
};

class GRU final : public RecurrentModule {
 public:
  GRU(int64_t in, int64_t hidden, Generator& generator,
      const RnnOptions& options = {})
      : RecurrentModule(ops::RnnCell::kGru, in, hidden, generator, options) {}
};

}  // namespace baton::nn
