// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/cuda/cudnn_backend.h"
#include "core/mutex.h"

namespace baton::cuda {

// The extents and strides, in elements, of a tensor of a graph.
struct CudnnForm {
  std::array<int64_t, 4> dims = {1, 1, 1, 1};
  std::array<int64_t, 4> strides = {1, 1, 1, 1};
};
CudnnForm DenseForm(const std::array<int64_t, 4>& dims);  // row-major

// Operations that cuDNN runs as one kernel. The caller describes them one by
// one: each reads tensors of the graph and writes another. Throws Error if
// cuDNN refuses one. Thread-compatible.
class CudnnGraph {
 public:
  // The number of a tensor of the graph.
  using Id = int64_t;

  explicit CudnnGraph(const char* op) : op_(op) {}

  // Adds a tensor in the GPU's memory, which the caller owns, aligned to 16
  // bytes.
  Id InMemory(cudnnDataType_t type, const CudnnForm& form);
  // Adds a tensor that one operation passes to another and that is never in
  // memory.
  Id Between(cudnnDataType_t type, const CudnnForm& form);
  // Adds one f32 in the host's memory.
  Id Scalar();

  void Matmul(Id a, Id b, Id product);  // sums in f32
  // Computes y = mode(x, b) in `precision`; b is 0 if the mode has no second
  // input.
  void Pointwise(cudnnPointwiseMode_t mode, Id x, Id b, Id y,
                 cudnnDataType_t precision = CUDNN_DATA_FLOAT);
  // Computes y = condition ? x : b.
  void Select(Id x, Id b, Id condition, Id y);
  // Writes to each element of y the position of x's element along `axis`.
  void Positions(Id x, int64_t axis, Id y);
  // Reduces over the axes where y has extent 1.
  void Reduce(cudnnReduceTensorOp_t mode, Id x, Id y);
  void Reshape(Id x, Id y);

  const char* op() const { return op_; }
  const std::vector<Descriptor>& operations() const { return operations_; }

 private:
  Descriptor& NewTensor(cudnnDataType_t type, const CudnnForm& form);
  const Descriptor& At(Id id) const {
    return tensors_[static_cast<size_t>(id - 1)];
  }
  Descriptor PointwiseKind(cudnnPointwiseMode_t mode,
                           cudnnDataType_t precision) const;
  // Adds an operation of the kind `of`, whose attributes `set` fills in.
  template <typename SetAttributes>
  void Add(cudnnBackendDescriptorType_t type, Descriptor of, SetAttributes set);

  const char* op_;
  std::vector<Descriptor> tensors_;  // numbered from 1
  std::vector<Descriptor> kinds_;    // of operations; these refer to them
  std::vector<Descriptor> operations_;
};

// A graph that is ready to run on one GPU. Thread-safe.
class CudnnPlan {
 public:
  // Returns the first of cuDNN's suggestions that fits; with `deterministic`,
  // the first that gives equal bits in equal calls. Null if there is none.
  // Handles are never destroyed, so the plan may keep this one.
  static std::shared_ptr<const CudnnPlan> Make(CudnnGraph graph,
                                               cudnnHandle_t handle,
                                               bool deterministic);

  int64_t workspace_bytes() const { return workspace_bytes_; }
  // Enqueues the work on the handle's stream. data[i] is the address of tensor
  // ids[i] of the graph.
  void Run(cudnnHandle_t handle, std::span<const int64_t> ids,
           std::span<void* const> data, void* workspace) const;

 private:
  explicit CudnnPlan(CudnnGraph graph);
  bool Build(cudnnHandle_t handle, bool deterministic);

  const CudnnGraph graph_;
  Descriptor operations_;
  std::vector<Descriptor> configs_;
  int64_t workspace_bytes_ = 0;
  mutable Mutex mutex_;  // some plans may not run on two threads at once
  std::vector<Descriptor> plan_ ABSL_GUARDED_BY(mutex_);  // one
};

}  // namespace baton::cuda
