// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/conv_choices.h"
#include "core/cuda/cudnn_backend.h"
#include "core/dtype.h"
#include "core/mutex.h"

namespace baton::cuda {

enum class ConvPass { kForward, kBackwardInput, kBackwardWeight };

// Leads error texts: the name of the op.
const char* OpOf(ConvPass pass);

// All that decides how cuDNN runs a convolution. Operands are dense, all in
// one layout.
struct ConvProblem {
  ConvPass pass = ConvPass::kForward;
  DType dtype = DType::kF32;
  std::array<int64_t, 4> x = {};       // [N, C, H, W]
  std::array<int64_t, 4> weight = {};  // [O, C/groups, kH, kW]
  std::array<int64_t, 4> y = {};       // [N, O, oH, oW]
  std::array<int64_t, 2> stride = {}, padding = {}, dilation = {};
  bool channels_last = false;
  bool accumulate = false;  // adds to its output
  bool tf32 = false;        // f32 only
  bool deterministic = false;
  int64_t alignment = 16;  // bytes that every operand's address divides by

  friend auto operator<=>(const ConvProblem&, const ConvProblem&) = default;
};

// "forward f32 nhwc x64,64,56,56 ...": the same for equal problems alone.
std::string KeyOf(const ConvProblem& problem);

// The addresses of a problem's tensors on the GPU; the pass says which is
// written.
struct ConvOperands {
  void* x = nullptr;
  void* weight = nullptr;
  void* y = nullptr;
};

// A problem as cuDNN sees it, from which plans are made. Immutable.
class ConvGraph {
 public:
  // Handles are never destroyed, so the graph may keep this one.
  ConvGraph(const ConvProblem& problem, cudnnHandle_t handle);

  const char* op() const { return op_; }
  cudnnHandle_t handle() const { return handle_; }
  const Descriptor& graph() const { return graph_; }
  bool accumulates() const { return accumulates_; }

  // What cuDNN suggests, likely fastest first, without what the problem rules
  // out: see Allows.
  std::vector<ConvChoice> Suggest(cudnnBackendHeurMode_t mode) const;
  // Whether the engine is as exact and as repeatable as the problem wants.
  bool Allows(const Descriptor& engine) const;

 private:
  const char* op_;
  cudnnHandle_t handle_;
  bool tensor_cores_, deterministic_, f32_, accumulates_;
  std::vector<Descriptor> parts_;
  Descriptor graph_;
};

// One way to run a problem, ready for the GPU of the graph's handle.
// Thread-safe.
class ConvPlan {
 public:
  // Null when the choice does not fit: cuDNN has no such engine, the engine
  // cannot run the problem, or the problem does not allow it.
  static std::shared_ptr<const ConvPlan> Make(
      std::shared_ptr<const ConvGraph> graph, const ConvChoice& choice);

  const ConvChoice& choice() const { return choice_; }
  int64_t workspace_bytes() const { return workspace_bytes_; }
  // Whether it is to add to its output: see ConvTrial::Adds.
  bool accumulates() const { return graph_->accumulates(); }

  // Gives the work to the handle's stream. `workspace` is aligned to 16 bytes.
  void Run(cudnnHandle_t handle, const ConvOperands& operands,
           void* workspace) const;

 private:
  ConvPlan(std::shared_ptr<const ConvGraph> graph, const ConvChoice& choice);
  bool Build();

  const std::shared_ptr<const ConvGraph> graph_;
  const ConvChoice choice_;
  std::vector<Descriptor> knobs_;
  Descriptor engine_, config_;
  int64_t workspace_bytes_ = 0;
  // Not every engine's plan may run on two threads at once.
  mutable Mutex mutex_;
  Descriptor plan_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::cuda
