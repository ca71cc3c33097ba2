// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cudnn.h>

#include <cstddef>
#include <vector>

#include "core/cuda/cudnn_backend.h"
#include "core/ops/rnn.h"

namespace baton::cuda {

// Owns a descriptor of cuDNN's older interface.
template <typename T, cudnnStatus_t (*kCreate)(T*),
          cudnnStatus_t (*kDestroy)(T)>
class OldDescriptor {
 public:
  explicit OldDescriptor(const char* op) { CheckCudnn(op, kCreate(&made_)); }
  ~OldDescriptor() { kDestroy(made_); }
  OldDescriptor(const OldDescriptor&) = delete;
  OldDescriptor& operator=(const OldDescriptor&) = delete;

  T get() const { return made_; }

 private:
  T made_ = nullptr;
};

// Describes one call to cuDNN: cell, extents, types, and the places of the
// weights in the single block that cuDNN requires. Confined to the call.
class RnnLayout {
 public:
  RnnLayout(const char* op, cudnnHandle_t handle, const ops::RnnInputs& in,
            const ops::RnnOptions& options);

  cudnnHandle_t handle() const { return handle_; }
  cudnnRNNDescriptor_t rnn() const { return rnn_.get(); }
  cudnnRNNDataDescriptor_t x() const { return x_.get(); }
  cudnnRNNDataDescriptor_t y() const { return y_.get(); }
  cudnnTensorDescriptor_t state() const { return state_.get(); }

  size_t weight_bytes() const { return weight_bytes_; }
  struct TempBytes {
    size_t work = 0, reserve = 0;
  };
  TempBytes TempSizes(cudnnForwardMode_t mode) const;

  // Copies weights into `block`, or out of it, on the handle's stream.
  // `weights` are dense, and in the order of RnnInputs.
  void Pack(const Tensor& block, const std::vector<Tensor>& weights) const;
  void Unpack(const Tensor& block, const std::vector<Tensor>& weights) const;

 private:
  // A range of bytes that is contiguous both in the block and in a weight.
  struct Piece {
    char* in_block;
    char* in_weight;
    size_t bytes;
  };

  void DescribeRnn(const ops::RnnInputs& in);
  void DescribeData(const ops::RnnInputs& in);
  // Returns the pieces of weights[i].
  std::vector<Piece> Pieces(const Tensor& block,
                            const std::vector<Tensor>& weights, size_t i) const;

  const char* const op_;
  const cudnnHandle_t handle_;
  const ops::RnnOptions options_;
  const int64_t hidden_;
  OldDescriptor<cudnnRNNDescriptor_t, cudnnCreateRNNDescriptor,
                cudnnDestroyRNNDescriptor>
      rnn_;
  OldDescriptor<cudnnDropoutDescriptor_t, cudnnCreateDropoutDescriptor,
                cudnnDestroyDropoutDescriptor>
      dropout_;
  OldDescriptor<cudnnRNNDataDescriptor_t, cudnnCreateRNNDataDescriptor,
                cudnnDestroyRNNDataDescriptor>
      x_, y_;
  using TensorDescriptor =
      OldDescriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor,
                    cudnnDestroyTensorDescriptor>;
  TensorDescriptor state_, matrix_, bias_;
  size_t weight_bytes_ = 0;
};

}  // namespace baton::cuda
