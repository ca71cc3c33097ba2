// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/rnn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/ops/reference.h"
#include "tests/support/test_device.h"

namespace baton::ops {
namespace {

using ::baton::testing::ErrorOf;
using ::baton::testing::ExpectNear;
using ::baton::testing::Numbers;
using ::baton::testing::ToleranceOf;
using ::testing::HasSubstr;
using Values = std::vector<double>;

RnnInputs InputsOf(const RnnOptions& options, DType dtype, int64_t steps,
                   int64_t batch, int64_t in, int64_t hidden) {
  uint64_t seed = 1;
  const auto make = [&](const Shape& shape) {
    return test::Put(Numbers(shape, dtype, seed++));
  };
  const int64_t directions = options.bidirectional ? 2 : 1;
  const int64_t rows = GatesOf(options.cell) * hidden;
  const Shape state = {options.layers * directions, batch, hidden};
  RnnInputs inputs = {make({steps, batch, in}), make(state), {}, {}};
  if (options.cell == RnnCell::kLstm) inputs.c = make(state);
  for (int64_t i = 0; i < options.layers * directions; ++i) {
    inputs.weights.push_back(
        make({rows, i < directions ? in : directions * hidden}));
    inputs.weights.push_back(make({rows, hidden}));
    inputs.weights.push_back(make({rows}));
    inputs.weights.push_back(make({rows}));
  }
  return inputs;
}

Values ValuesOf(const Tensor& x) {
  return x.To(DType::kF64).ToVector<double>();
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// W v + b of one sequence.
Values Affine(const Values& w, const Values& b, const Values& v) {
  Values out = b;
  for (size_t row = 0; row < b.size(); ++row) {
    for (size_t k = 0; k < v.size(); ++k)
      out[row] += w[row * v.size() + k] * v[k];
  }
  return out;
}

struct State {
  Values h, c;
};

// One step of one sequence, as core/ops/rnn.h writes it.
State Step(RnnCell cell, const Values& x, const State& before,
           const std::vector<Values>& w) {
  const size_t hidden = before.h.size();
  const Values a = Affine(w[0], w[2], x), b = Affine(w[1], w[3], before.h);
  State after = before;
  for (size_t k = 0; k < hidden; ++k) {
    const auto both = [&](size_t gate) {
      return a[gate * hidden + k] + b[gate * hidden + k];
    };
    if (cell == RnnCell::kLstm) {
      after.c[k] = Sigmoid(both(1)) * before.c[k] +
                   Sigmoid(both(0)) * std::tanh(both(2));
      after.h[k] = Sigmoid(both(3)) * std::tanh(after.c[k]);
    } else {
      const double r = Sigmoid(both(0)), z = Sigmoid(both(1));
      const double n = std::tanh(a[2 * hidden + k] + r * b[2 * hidden + k]);
      after.h[k] = (1 - z) * n + z * before.h[k];
    }
  }
  return after;
}

Values Row(const Values& all, int64_t row, int64_t width) {
  const auto begin = all.begin() + row * width;
  return {begin, begin + width};
}

// Compares a layer of one direction with Step.
void CheckLayer(RnnCell cell, DType dtype) {
  constexpr int64_t kSteps = 4, kBatch = 3, kIn = 5, kHidden = 7;
  const RnnInputs in =
      InputsOf({.cell = cell}, dtype, kSteps, kBatch, kIn, kHidden);
  const RnnResult result = Rnn(in, {.cell = cell}, false);
  const bool lstm = cell == RnnCell::kLstm;
  std::vector<Values> w;
  for (const Tensor& weight : in.weights) w.push_back(ValuesOf(weight));
  const Values x = ValuesOf(in.x), h = ValuesOf(in.h);
  const Values c = lstm ? ValuesOf(in.c) : h;
  Values y(kSteps * kBatch * kHidden), h_last, c_last;
  for (int64_t n = 0; n < kBatch; ++n) {
    State state = {Row(h, n, kHidden), Row(c, n, kHidden)};
    for (int64_t t = 0; t < kSteps; ++t) {
      state = Step(cell, Row(x, t * kBatch + n, kIn), state, w);
      std::copy(state.h.begin(), state.h.end(),
                y.begin() + (t * kBatch + n) * kHidden);
    }
    h_last.insert(h_last.end(), state.h.begin(), state.h.end());
    c_last.insert(c_last.end(), state.c.begin(), state.c.end());
  }
  const double tolerance = ToleranceOf(dtype);
  ExpectNear(result.y, {kSteps, kBatch, kHidden}, y, tolerance, "y");
  ExpectNear(result.h, {1, kBatch, kHidden}, h_last, tolerance, "h");
  if (lstm) ExpectNear(result.c, {1, kBatch, kHidden}, c_last, tolerance, "c");
  EXPECT_EQ(result.c.defined(), lstm);
  EXPECT_EQ(result.y.dtype(), dtype);
}

TEST(Rnn, FollowsItsFormulasStepByStep) {
  for (RnnCell cell : {RnnCell::kLstm, RnnCell::kGru}) {
    for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16})
      CheckLayer(cell, dtype);
  }
}

// Both directions and layers are made of single ones.
TEST(Rnn, LayersAndDirectionsAreSingleOnesJoined) {
  for (RnnCell cell : {RnnCell::kLstm, RnnCell::kGru}) {
    constexpr int64_t kSteps = 4, kBatch = 2, kHidden = 3;
    const RnnOptions options = {
        .cell = cell, .layers = 2, .bidirectional = true};
    const RnnInputs in =
        InputsOf(options, DType::kF64, kSteps, kBatch, 5, kHidden);
    const RnnResult whole = Rnn(in, options, false);
    Tensor x = in.x;
    for (int64_t layer = 0; layer < 2; ++layer) {
      const Tensor y =
          Tensor::Empty({kSteps, kBatch, 2 * kHidden},
                        {.dtype = DType::kF64, .device = x.device()});
      for (int64_t d = 0; d < 2; ++d) {
        const int64_t at = layer * 2 + d;
        const auto state = [&](const Tensor& s) {
          return s.defined() ? s.Slice(0, at, at + 1) : s;
        };
        const auto turned = [&](const Tensor& t) {
          const Tensor copy = Tensor::EmptyLike(t);
          for (int64_t i = 0; i < kSteps; ++i)
            copy.Select(0, i).CopyFrom(
                t.Select(0, d == 0 ? i : kSteps - 1 - i));
          return copy;
        };
        const auto first = in.weights.begin() + at * 4;
        const RnnResult one =
            Rnn({turned(x), state(in.h), state(in.c), {first, first + 4}},
                {.cell = cell}, false);
        y.Slice(2, d * kHidden, (d + 1) * kHidden).CopyFrom(turned(one.y));
        ExpectNear(state(whole.h), one.h.shape(), ValuesOf(one.h), 1e-11, "h");
        if (one.c.defined())
          ExpectNear(state(whole.c), one.c.shape(), ValuesOf(one.c), 1e-11,
                     "c");
      }
      x = y;
    }
    ExpectNear(whole.y, x.shape(), ValuesOf(x), 1e-11, "y");
  }
}

TEST(Rnn, SmallFloatsHaveTheGradientsOfF32) {
  const RnnOptions options = {.cell = RnnCell::kLstm, .layers = 2};
  const RnnInputs wide = InputsOf(options, DType::kF32, 3, 4, 8, 8);
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    RnnInputs in = {wide.x.To(dtype), wide.h.To(dtype), wide.c.To(dtype), {}};
    for (const Tensor& weight : wide.weights)
      in.weights.push_back(weight.To(dtype));
    const Tensor dy = test::Put(Numbers({3, 4, 8}, dtype, 99));
    const RnnGradients got =
        RnnBackward(in, Rnn(in, options, true), dy, {}, {}, options);
    const RnnGradients expected = RnnBackward(
        wide, Rnn(wide, options, true), dy.To(DType::kF32), {}, {}, options);
    // Rounded inputs, so a wider tolerance than for rounded results.
    const double tolerance = 4 * ToleranceOf(dtype);
    ExpectNear(got.x, wide.x.shape(), ValuesOf(expected.x), tolerance, "dx");
    EXPECT_EQ(got.x.dtype(), dtype);
    for (size_t i = 0; i < in.weights.size(); ++i) {
      ExpectNear(got.weights[i], in.weights[i].shape(),
                 ValuesOf(expected.weights[i]), tolerance, "dweight");
    }
  }
}

TEST(Rnn, NoStepsLeaveTheStateAndGiveNoWeightAGradient) {
  const RnnOptions options = {.cell = RnnCell::kGru};
  const RnnInputs in = InputsOf(options, DType::kF32, 0, 2, 3, 4);
  const RnnResult result = Rnn(in, options, true);
  EXPECT_EQ(result.y.shape(), Shape({0, 2, 4}));
  EXPECT_EQ(result.h.ToVector<float>(), in.h.ToVector<float>());
  const Tensor dh = test::Put(Numbers({1, 2, 4}, DType::kF32, 5));
  const RnnGradients grads = RnnBackward(in, result, {}, dh, {}, options);
  EXPECT_EQ(grads.h.ToVector<float>(), dh.ToVector<float>());
  EXPECT_EQ(grads.weights[1].ToVector<float>(), std::vector<float>(48, 0.f));
}

TEST(Rnn, NamesWhatDoesNotFit) {
  const RnnOptions lstm = {.cell = RnnCell::kLstm};
  const RnnInputs good = InputsOf(lstm, DType::kF32, 3, 2, 4, 5);
  const auto text = [&](auto change) {
    RnnInputs in = good;
    change(in);
    return ErrorOf([&] { Rnn(in, lstm, false); });
  };
  EXPECT_EQ(text([](RnnInputs&) {}), "");
  EXPECT_THAT(text([](RnnInputs& in) { in.x = in.x.Select(0, 0); }),
              HasSubstr("[lstm] expected x [T, N, I], got [2, 4]"));
  EXPECT_THAT(text([](RnnInputs& in) { in.weights.pop_back(); }),
              HasSubstr("expected 4 weights, got 3"));
  EXPECT_THAT(text([](RnnInputs& in) { in.weights[0] = in.weights[1]; }),
              HasSubstr("expected W_ih f32[20, 4], got f32[20, 5]"));
  EXPECT_THAT(text([](RnnInputs& in) { in.weights[3] = Tensor(); }),
              HasSubstr("expected all biases or none"));
  EXPECT_THAT(text([](RnnInputs& in) { in.h = in.h.To(DType::kF64); }),
              HasSubstr("expected h f32[1, 2, 5], got f64[1, 2, 5]"));
  const RnnInputs gru =
      InputsOf({.cell = RnnCell::kGru}, DType::kF32, 3, 2, 4, 5);
  EXPECT_THAT(
      ErrorOf([&] {
        Rnn({gru.x, gru.h, gru.h, gru.weights}, {.cell = RnnCell::kGru}, false);
      }),
      HasSubstr("[gru] a GRU has no cells"));
}

}  // namespace
}  // namespace baton::ops
