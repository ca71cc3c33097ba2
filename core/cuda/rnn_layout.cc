// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/rnn_layout.h"

#include <array>

#include "core/cuda/launch.h"
#include "core/precision.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

struct Types {
  cudnnDataType_t data, compute;
  cudnnMathType_t math;
};

Types TypesOf(const char* op, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      // The default would round f32 to TF32.
      return {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT,
              Tf32Allowed() ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH};
    case DType::kF64:
      return {CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, CUDNN_DEFAULT_MATH};
    case DType::kF16:
      return {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH};
    case DType::kBF16:
      return {CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH};
    default:
      Fail(op, absl::StrCat("expected a floating dtype, got ", Name(dtype)));
  }
}

int Int(int64_t value) { return static_cast<int>(value); }

}  // namespace

RnnLayout::RnnLayout(const char* op, cudnnHandle_t handle,
                     const ops::RnnInputs& in, const ops::RnnOptions& options)
    : op_(op),
      handle_(handle),
      options_(options),
      hidden_(in.h.dim(2)),
      rnn_(op),
      dropout_(op),
      x_(op),
      y_(op),
      state_(op),
      matrix_(op),
      bias_(op) {
  DescribeRnn(in);
  DescribeData(in);
  CheckCudnn(op_, cudnnGetRNNWeightSpaceSize(handle_, rnn(), &weight_bytes_));
}

void RnnLayout::DescribeRnn(const ops::RnnInputs& in) {
  const Types types = TypesOf(op_, in.x.dtype());
  CheckCudnn(op_, cudnnSetDropoutDescriptor(dropout_.get(), handle_, 0, nullptr,
                                            0, 0));
  CheckCudnn(
      op_,
      cudnnSetRNNDescriptor_v8(
          rnn(), CUDNN_RNN_ALGO_STANDARD,
          options_.cell == ops::RnnCell::kLstm ? CUDNN_LSTM : CUDNN_GRU,
          in.weights[2].defined() ? CUDNN_RNN_DOUBLE_BIAS : CUDNN_RNN_NO_BIAS,
          options_.bidirectional ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
          CUDNN_LINEAR_INPUT, types.data, types.compute, types.math,
          Int(in.x.dim(2)), Int(hidden_), Int(hidden_), Int(options_.layers),
          dropout_.get(), CUDNN_RNN_PADDED_IO_DISABLED));
}

void RnnLayout::DescribeData(const ops::RnnInputs& in) {
  const cudnnDataType_t type = TypesOf(op_, in.x.dtype()).data;
  const int steps = Int(in.x.dim(0)), batch = Int(in.x.dim(1));
  const int directions = options_.bidirectional ? 2 : 1;
  const std::vector<int> lengths(static_cast<size_t>(batch), steps);
  const auto describe = [&](cudnnRNNDataDescriptor_t data, int64_t width) {
    CheckCudnn(op_, cudnnSetRNNDataDescriptor(
                        data, type, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
                        steps, batch, Int(width), lengths.data(), nullptr));
  };
  describe(x(), in.x.dim(2));
  describe(y(), directions * hidden_);
  const std::array<int, 3> dims = {Int(options_.layers) * directions, batch,
                                   Int(hidden_)};
  const std::array<int, 3> strides = {dims[1] * dims[2], dims[2], 1};
  CheckCudnn(op_, cudnnSetTensorNdDescriptor(state(), type, 3, dims.data(),
                                             strides.data()));
}

RnnLayout::TempBytes RnnLayout::TempSizes(cudnnForwardMode_t mode) const {
  TempBytes sizes;
  CheckCudnn(op_, cudnnGetRNNTempSpaceSizes(handle_, rnn(), mode, x(),
                                            &sizes.work, &sizes.reserve));
  return sizes;
}

// cuDNN numbers the gates' products with x from 0 and those with h after them,
// in PyTorch's order, and returns the place of each gate's matrix and bias.
// Gates that are adjacent there form one piece.
std::vector<RnnLayout::Piece> RnnLayout::Pieces(
    const Tensor& block, const std::vector<Tensor>& weights, size_t i) const {
  const int64_t gates = ops::GatesOf(options_.cell);
  const bool is_bias = i % 4 >= 2;
  const int64_t first = i % 2 == 0 ? 0 : gates;
  const size_t bytes = weights[i].nbytes() / static_cast<size_t>(gates);
  auto* weight = static_cast<char*>(weights[i].raw_data());
  std::vector<Piece> pieces;
  for (int64_t gate = 0; gate < gates; ++gate) {
    void* matrix = nullptr;
    void* bias = nullptr;
    CheckCudnn(op_, cudnnGetRNNWeightParams(
                        handle_, rnn(), Int(static_cast<int64_t>(i / 4)),
                        weight_bytes_, block.raw_data(), Int(first + gate),
                        matrix_.get(), &matrix, bias_.get(), &bias));
    auto* place = static_cast<char*>(is_bias ? bias : matrix);
    Require(place != nullptr, op_, "cuDNN has no place for weight ", i);
    if (!pieces.empty() &&
        pieces.back().in_block + pieces.back().bytes == place) {
      pieces.back().bytes += bytes;
    } else {
      pieces.push_back({place, weight, bytes});
    }
    weight += bytes;
  }
  return pieces;
}

void RnnLayout::Pack(const Tensor& block,
                     const std::vector<Tensor>& weights) const {
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!weights[i].defined()) continue;
    const Launch launch(op_, {&block}, {&weights[i]});
    for (const Piece& piece : Pieces(block, weights, i)) {
      launch.Check(cudaMemcpyAsync(piece.in_block, piece.in_weight, piece.bytes,
                                   cudaMemcpyDeviceToDevice, launch.stream()));
    }
  }
}

void RnnLayout::Unpack(const Tensor& block,
                       const std::vector<Tensor>& weights) const {
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!weights[i].defined()) continue;
    const Launch launch(op_, {&weights[i]}, {&block});
    for (const Piece& piece : Pieces(block, weights, i)) {
      launch.Check(cudaMemcpyAsync(piece.in_weight, piece.in_block, piece.bytes,
                                   cudaMemcpyDeviceToDevice, launch.stream()));
    }
  }
}

}  // namespace baton::cuda
