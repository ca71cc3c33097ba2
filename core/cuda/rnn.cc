// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/rnn.h"

#include "core/cuda/launch.h"
#include "core/cuda/rnn_layout.h"

// `saved` contains the packed weights and cuDNN's reserve space.
namespace baton::cuda {
namespace {

using ops::RnnCell;
using ops::RnnGradients;
using ops::RnnInputs;
using ops::RnnOptions;
using ops::RnnResult;

const char* OpOf(const RnnOptions& options) {
  return options.cell == RnnCell::kLstm ? "lstm" : "gru";
}

Tensor Bytes(const Tensor& model, size_t bytes) {
  return Tensor::Empty({static_cast<int64_t>(bytes)},
                       {.dtype = DType::kU8, .device = model.device()});
}

void Zero(const Launch& launch, const Tensor& bytes) {
  launch.Check(
      cudaMemsetAsync(bytes.raw_data(), 0, bytes.nbytes(), launch.stream()));
}

void* DataOf(const Tensor& tensor) {
  return tensor.defined() ? tensor.raw_data() : nullptr;
}

RnnInputs Dense(const RnnInputs& in) {
  RnnInputs dense = {in.x.Contiguous(),
                     in.h.Contiguous(),
                     in.c.defined() ? in.c.Contiguous() : in.c,
                     {}};
  for (const Tensor& weight : in.weights)
    dense.weights.push_back(weight.defined() ? weight.Contiguous() : weight);
  return dense;
}

}  // namespace

RnnResult RnnForward(const RnnInputs& inputs, const RnnOptions& options,
                     bool keep) {
  const char* op = OpOf(options);
  const RnnInputs in = Dense(inputs);
  RnnResult result;
  result.y = Tensor::Empty(
      {in.x.dim(0), in.x.dim(1), (options.bidirectional ? 2 : 1) * in.h.dim(2)},
      {.dtype = in.x.dtype(), .device = in.x.device()});
  result.h = Tensor::EmptyLike(in.h);
  if (in.c.defined()) result.c = Tensor::EmptyLike(in.c);
  const Launch launch(op, {&result.y, &result.h, &result.c},
                      {&in.x, &in.h, &in.c});
  const RnnLayout layout(op, CudnnHandle(op, launch.device(), launch.stream()),
                         in, options);
  const cudnnForwardMode_t mode =
      keep ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
  const RnnLayout::TempBytes sizes = layout.TempSizes(mode);
  const Tensor weights = Bytes(in.x, layout.weight_bytes());
  const Tensor work = Bytes(in.x, sizes.work);
  const Tensor reserve = Bytes(in.x, sizes.reserve);
  Zero(launch, weights);  // between the weights, too
  layout.Pack(weights, in.weights);
  // All sequences have the length of x, so no lengths are passed on the device.
  CheckCudnn(op, cudnnRNNForward(
                     layout.handle(), layout.rnn(), mode, nullptr, layout.x(),
                     in.x.raw_data(), layout.y(), result.y.raw_data(),
                     layout.state(), in.h.raw_data(), result.h.raw_data(),
                     layout.state(), DataOf(in.c), DataOf(result.c),
                     weights.nbytes(), weights.raw_data(), work.nbytes(),
                     work.raw_data(), reserve.nbytes(), reserve.raw_data()));
  if (keep) result.saved = {weights, reserve};
  return result;
}

RnnGradients RnnBackward(const RnnInputs& inputs, const RnnResult& result,
                         const Tensor& dy_in, const Tensor& dh_in,
                         const Tensor& dc_in, const RnnOptions& options) {
  const char* op = OpOf(options);
  const RnnInputs in = Dense(inputs);
  const Tensor y = result.y.Contiguous(), dy = dy_in.Contiguous();
  const Tensor dh = dh_in.Contiguous();
  const Tensor dc = dc_in.defined() ? dc_in.Contiguous() : dc_in;
  const Tensor& weights = result.saved[0];
  // cuDNN writes to the reserve space, and there may be another backward pass.
  const Tensor reserve = result.saved[1].Clone();
  RnnGradients grads = {
      Tensor::EmptyLike(in.x), Tensor::EmptyLike(in.h), {}, {}};
  if (in.c.defined()) grads.c = Tensor::EmptyLike(in.c);
  for (const Tensor& weight : in.weights)
    grads.weights.push_back(weight.defined() ? Tensor::EmptyLike(weight)
                                             : weight);
  const Launch launch(op, {&grads.x, &grads.h, &grads.c, &reserve},
                      {&in.x, &in.h, &in.c, &y, &dy, &dh, &dc, &weights});
  const RnnLayout layout(op, CudnnHandle(op, launch.device(), launch.stream()),
                         in, options);
  const Tensor work =
      Bytes(in.x, layout.TempSizes(CUDNN_FWD_MODE_TRAINING).work);
  CheckCudnn(
      op, cudnnRNNBackwardData_v8(
              layout.handle(), layout.rnn(), nullptr, layout.y(), y.raw_data(),
              dy.raw_data(), layout.x(), grads.x.raw_data(), layout.state(),
              in.h.raw_data(), dh.raw_data(), grads.h.raw_data(),
              layout.state(), DataOf(in.c), DataOf(dc), DataOf(grads.c),
              weights.nbytes(), weights.raw_data(), work.nbytes(),
              work.raw_data(), reserve.nbytes(), reserve.raw_data()));
  const Tensor dweights = Bytes(in.x, weights.nbytes());
  Zero(launch, dweights);  // cuDNN adds
  CheckCudnn(op, cudnnRNNBackwardWeights_v8(
                     layout.handle(), layout.rnn(), CUDNN_WGRAD_MODE_ADD,
                     nullptr, layout.x(), in.x.raw_data(), layout.state(),
                     in.h.raw_data(), layout.y(), y.raw_data(),
                     dweights.nbytes(), dweights.raw_data(), work.nbytes(),
                     work.raw_data(), reserve.nbytes(), reserve.raw_data()));
  layout.Unpack(dweights, grads.weights);
  return grads;
}

}  // namespace baton::cuda
