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

// Returns the name of the op, which leads error texts.
const char* OpOf(ConvPass pass);

// Everything that decides how cuDNN runs a convolution. The operands are dense,
// all in one layout.
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

// Returns "forward f32 nhwc x64,64,56,56 ...". Only equal problems have equal
// keys.
std::string KeyOf(const ConvProblem& problem);

// The addresses of a problem's tensors on the GPU. The pass decides which of
// them is written.
struct ConvOperands {
  void* x = nullptr;
  void* weight = nullptr;
  void* y = nullptr;
};

// A problem in cuDNN's terms, from which plans are made. Immutable.
class ConvGraph {
 public:
  // Handles are never destroyed, so the graph may keep this one.
  ConvGraph(const ConvProblem& problem, cudnnHandle_t handle);

  const char* op() const { return op_; }
  cudnnHandle_t handle() const { return handle_; }
  const Descriptor& graph() const { return graph_; }
  bool accumulates() const { return accumulates_; }

  // Returns what cuDNN suggests, likely fastest first, without engines that the
  // problem does not allow (see Allows).
  std::vector<ConvChoice> Suggest(cudnnBackendHeurMode_t mode) const;
  // Returns whether the engine is as exact and as repeatable as the problem
  // requires.
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
  // Returns null if the choice does not fit: cuDNN has no such engine, the
  // engine cannot run the problem, or the problem does not allow it.
  static std::shared_ptr<const ConvPlan> Make(
      std::shared_ptr<const ConvGraph> graph, const ConvChoice& choice);

  const ConvChoice& choice() const { return choice_; }
  int64_t workspace_bytes() const { return workspace_bytes_; }
  // Whether the plan is meant to add to its output: see ConvTrial::Adds.
  bool accumulates() const { return graph_->accumulates(); }

  // Enqueues the work on the handle's stream. `workspace` is aligned to 16
  // bytes.
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
  // Some engines' plans may not run on two threads at once.
  mutable Mutex mutex_;
  Descriptor plan_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::cuda
