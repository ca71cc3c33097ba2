// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/rnn.h"

#include "core/cpu/rnn.h"
#include "core/cuda/rnn.h"
#include "core/ops/checks.h"
#include "core/ops/dispatch.h"

namespace baton::ops {
namespace {

const char* OpOf(const RnnOptions& options) {
  return options.cell == RnnCell::kLstm ? "lstm" : "gru";
}

int64_t DirectionsOf(const RnnOptions& options) {
  return options.bidirectional ? 2 : 1;
}

void CheckTensor(const char* op, const Tensor& x, const char* name,
                 const Tensor& value, const Shape& shape) {
  RequireOneDevice(op, x, value);
  Require(value.dtype() == x.dtype() && value.shape() == shape, op, "expected ",
          name, " ", Name(x.dtype()), shape.ToString(), ", got ",
          Name(value.dtype()), value.shape().ToString());
}

// Returns H; throws unless inputs and options fit together.
int64_t CheckInputs(const RnnInputs& in, const RnnOptions& options) {
  const char* op = OpOf(options);
  const int64_t directions = DirectionsOf(options);
  const int64_t gates = GatesOf(options.cell);
  RequireFloating(op, in.x);
  Require(in.x.rank() == 3, op, "expected x [T, N, I], got ",
          in.x.shape().ToString());
  Require(options.layers > 0, op, "expected layers above 0, got ",
          options.layers);
  const auto count = static_cast<int64_t>(in.weights.size());
  Require(count == 4 * options.layers * directions, op, "expected ",
          4 * options.layers * directions, " weights, got ", count);
  Require(in.weights[1].defined() && in.weights[1].rank() == 2, op,
          "expected W_hh [", gates, " * H, H]");
  const int64_t hidden = in.weights[1].dim(1);
  const bool biases = in.weights[2].defined();
  for (int64_t i = 0; i < count; i += 4) {
    const auto* w = &in.weights[static_cast<size_t>(i)];
    const bool first = i < 4 * directions;
    CheckTensor(op, in.x, "W_ih", w[0],
                {gates * hidden, first ? in.x.dim(2) : directions * hidden});
    CheckTensor(op, in.x, "W_hh", w[1], {gates * hidden, hidden});
    Require(w[2].defined() == biases && w[3].defined() == biases, op,
            "expected all biases or none");
    if (!biases) continue;
    CheckTensor(op, in.x, "b_ih", w[2], {gates * hidden});
    CheckTensor(op, in.x, "b_hh", w[3], {gates * hidden});
  }
  const Shape state = {options.layers * directions, in.x.dim(1), hidden};
  if (in.h.defined()) CheckTensor(op, in.x, "h", in.h, state);
  if (in.c.defined()) CheckTensor(op, in.x, "c", in.c, state);
  Require(options.cell == RnnCell::kLstm || !in.c.defined(), op,
          "a GRU has no cells");
  return hidden;
}

Tensor OrZeros(const Tensor& value, const Shape& shape, const Tensor& model) {
  if (value.defined()) return value;
  return Tensor::Zeros(shape,
                       {.dtype = model.dtype(), .device = model.device()});
}

// On the CPU f16 and bf16 are computed in f32.
bool IsWidened(const Tensor& x) {
  return x.device().is_cpu() && IsHalf(x.dtype());
}

Tensor Cast(const Tensor& x, DType dtype) {
  return x.defined() ? x.To(dtype) : x;
}

std::vector<Tensor> Cast(std::vector<Tensor> tensors, DType dtype) {
  for (Tensor& tensor : tensors) tensor = Cast(tensor, dtype);
  return tensors;
}

RnnInputs Widened(const RnnInputs& in) {
  constexpr DType kWide = DType::kF32;
  return {in.x.To(kWide), Cast(in.h, kWide), Cast(in.c, kWide),
          Cast(in.weights, kWide)};
}

// Kernels need states: undefined ones become zeros.
RnnInputs Completed(const RnnInputs& in, const RnnOptions& options,
                    int64_t hidden) {
  const Shape state = {options.layers * DirectionsOf(options), in.x.dim(1),
                       hidden};
  RnnInputs all = in;
  all.h = OrZeros(in.h, state, in.x);
  if (options.cell == RnnCell::kLstm) all.c = OrZeros(in.c, state, in.x);
  return all;
}

RnnGradients ZeroGradients(const RnnInputs& in, const Tensor& dh,
                           const Tensor& dc) {
  RnnGradients zeros = {Tensor::ZerosLike(in.x), dh, dc, {}};
  for (const Tensor& weight : in.weights) {
    zeros.weights.push_back(weight.defined() ? Tensor::ZerosLike(weight)
                                             : weight);
  }
  return zeros;
}

}  // namespace

RnnResult Rnn(const RnnInputs& inputs, const RnnOptions& options, bool keep) {
  const int64_t hidden = CheckInputs(inputs, options);
  if (IsWidened(inputs.x)) {
    RnnResult wide = Rnn(Widened(inputs), options, keep);
    const DType dtype = inputs.x.dtype();
    if (keep) wide.saved.push_back(wide.y);  // unrounded, for RnnBackward
    return {Cast(wide.y, dtype), Cast(wide.h, dtype), Cast(wide.c, dtype),
            std::move(wide.saved)};
  }
  const RnnInputs all = Completed(inputs, options, hidden);
  const Shape shape = {inputs.x.dim(0), inputs.x.dim(1),
                       DirectionsOf(options) * hidden};
  if (shape.numel() == 0) {
    return {OrZeros({}, shape, inputs.x),
            all.h.Clone(),
            all.c.defined() ? all.c.Clone() : all.c,
            {}};
  }
  return KernelFor(inputs.x, cpu::RnnForward, cuda::RnnForward)(all, options,
                                                                keep);
}

RnnGradients RnnBackward(const RnnInputs& inputs, const RnnResult& result,
                         const Tensor& dy, const Tensor& dh, const Tensor& dc,
                         const RnnOptions& options) {
  const char* op = OpOf(options);
  const int64_t hidden = CheckInputs(inputs, options);
  if (IsWidened(inputs.x)) {
    constexpr DType kWide = DType::kF32;
    RnnResult wide = {
        {}, Cast(result.h, kWide), Cast(result.c, kWide), result.saved};
    wide.y = wide.saved.back();
    wide.saved.pop_back();
    RnnGradients grads = RnnBackward(Widened(inputs), wide, Cast(dy, kWide),
                                     Cast(dh, kWide), Cast(dc, kWide), options);
    const DType dtype = inputs.x.dtype();
    return {Cast(grads.x, dtype), Cast(grads.h, dtype), Cast(grads.c, dtype),
            Cast(std::move(grads.weights), dtype)};
  }
  const RnnInputs all = Completed(inputs, options, hidden);
  const Tensor all_dy = OrZeros(dy, result.y.shape(), inputs.x);
  const Tensor all_dh = OrZeros(dh, all.h.shape(), inputs.x);
  const bool cells = options.cell == RnnCell::kLstm;
  const Tensor all_dc = cells ? OrZeros(dc, all.c.shape(), inputs.x) : Tensor();
  CheckTensor(op, inputs.x, "dy", all_dy, result.y.shape());
  CheckTensor(op, inputs.x, "dh", all_dh, all.h.shape());
  if (cells) CheckTensor(op, inputs.x, "dc", all_dc, all.c.shape());
  RnnGradients grads =
      result.y.numel() == 0
          ? ZeroGradients(all, all_dh, all_dc)
          : KernelFor(inputs.x, cpu::RnnBackward, cuda::RnnBackward)(
                all, result, all_dy, all_dh, all_dc, options);
  if (!inputs.h.defined()) grads.h = Tensor();
  if (!inputs.c.defined()) grads.c = Tensor();
  return grads;
}

}  // namespace baton::ops
