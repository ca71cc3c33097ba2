// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/conv_plan.h"

#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

// The ids of the operands in plans and variant packs.
constexpr int64_t kX = 1, kWeight = 2, kY = 3;
constexpr size_t kMostSuggestions = 64;

struct PassNames {
  const char* op;
  const char* key;
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t x, weight, y, window, alpha, beta;
};

constexpr std::array<PassNames, 3> kPasses = {{
    {"conv2d", "forward",
     CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {"conv2d_backward_input", "backward_input",
     CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {"conv2d_backward_weight", "backward_weight",
     CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
}};

const PassNames& NamesOf(ConvPass pass) {
  return kPasses[static_cast<size_t>(pass)];
}

cudnnDataType_t DataTypeOf(const char* op, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return CUDNN_DATA_FLOAT;
    case DType::kF64:
      return CUDNN_DATA_DOUBLE;
    case DType::kF16:
      return CUDNN_DATA_HALF;
    case DType::kBF16:
      return CUDNN_DATA_BFLOAT16;
    default:
      Fail(op, absl::StrCat("expected a floating dtype, got ", Name(dtype)));
  }
}

template <size_t kSize>
std::span<const int64_t> All(const std::array<int64_t, kSize>& values) {
  return values;
}

Descriptor TensorOf(const ConvProblem& problem, int64_t id,
                    const std::array<int64_t, 4>& dims) {
  const char* op = OpOf(problem.pass);
  const auto [n, c, h, w] = dims;
  const std::array<int64_t, 4> strides =
      problem.channels_last ? std::array<int64_t, 4>{c * h * w, 1, w * c, c}
                            : std::array<int64_t, 4>{c * h * w, h * w, w, 1};
  Descriptor tensor(op, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  tensor.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, DataTypeOf(op, problem.dtype));
  tensor.Set(CUDNN_ATTR_TENSOR_DIMENSIONS, All(dims));
  tensor.Set(CUDNN_ATTR_TENSOR_STRIDES, All(strides));
  tensor.Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, problem.alignment);
  tensor.Finalize();
  return tensor;
}

Descriptor WindowOf(const ConvProblem& problem) {
  Descriptor window(OpOf(problem.pass), CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  window.Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, problem.dtype == DType::kF64
                                                   ? CUDNN_DATA_DOUBLE
                                                   : CUDNN_DATA_FLOAT);
  window.Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  window.Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2});
  window.Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, All(problem.stride));
  window.Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, All(problem.padding));
  window.Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, All(problem.padding));
  window.Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, All(problem.dilation));
  window.Finalize();
  return window;
}

// cuDNN derives the groups from the channels of x and weight. `parts` are the
// descriptors that the operation consists of.
Descriptor OperationOf(const ConvProblem& problem,
                       const std::vector<Descriptor>& parts) {
  const PassNames& names = NamesOf(problem.pass);
  Descriptor operation(names.op, names.operation);
  operation.Set(names.x, parts[0]);
  operation.Set(names.weight, parts[1]);
  operation.Set(names.y, parts[2]);
  operation.Set(names.window, parts[3]);
  const double beta = problem.accumulate ? 1.0 : 0.0;
  if (problem.dtype == DType::kF64) {
    operation.Set(names.alpha, 1.0);
    operation.Set(names.beta, beta);
  } else {
    operation.Set(names.alpha, 1.0f);
    operation.Set(names.beta, static_cast<float>(beta));
  }
  operation.Finalize();
  return operation;
}

ConvChoice ChoiceOf(const Descriptor& config, const Descriptor& engine) {
  ConvChoice choice;
  choice.engine = engine.GetInt(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  for (const Descriptor& knob : config.GetDescriptors(
           CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
           CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS)) {
    const auto type =
        knob.Get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, 1);
    choice.knobs.emplace_back(type.at(0),
                              knob.GetInt(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  }
  return choice;
}

}  // namespace

const char* OpOf(ConvPass pass) { return NamesOf(pass).op; }

std::string KeyOf(const ConvProblem& p) {
  return absl::StrCat(
      NamesOf(p.pass).key, " ", Name(p.dtype),
      p.channels_last ? " nhwc x" : " nchw x", absl::StrJoin(p.x, ","), " w",
      absl::StrJoin(p.weight, ","), " y", absl::StrJoin(p.y, ","), " s",
      absl::StrJoin(p.stride, ","), " p", absl::StrJoin(p.padding, ","), " d",
      absl::StrJoin(p.dilation, ","), " a", p.alignment,
      p.accumulate ? " adding" : "", p.tf32 ? " tf32" : "",
      p.deterministic ? " deterministic" : "");
}

ConvGraph::ConvGraph(const ConvProblem& problem, cudnnHandle_t handle)
    : op_(OpOf(problem.pass)),
      handle_(handle),
      tensor_cores_(problem.dtype != DType::kF32 || problem.tf32),
      deterministic_(problem.deterministic),
      f32_(problem.dtype == DType::kF32),
      accumulates_(problem.accumulate),
      graph_(op_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
  parts_.push_back(TensorOf(problem, kX, problem.x));
  parts_.push_back(TensorOf(problem, kWeight, problem.weight));
  parts_.push_back(TensorOf(problem, kY, problem.y));
  parts_.push_back(WindowOf(problem));
  parts_.push_back(OperationOf(problem, parts_));
  graph_.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, parts_.back());
  graph_.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  graph_.Finalize();
}

std::vector<ConvChoice> ConvGraph::Suggest(cudnnBackendHeurMode_t mode) const {
  Descriptor heuristics(op_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  std::vector<ConvChoice> choices;
  if (!heuristics.TryFinalize()) return choices;
  for (const Descriptor& config : heuristics.GetDescriptors(
           CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
           kMostSuggestions)) {
    const std::vector<Descriptor> engine = config.GetDescriptors(
        CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
    if (Allows(engine.at(0))) choices.push_back(ChoiceOf(config, engine.at(0)));
  }
  return choices;
}

bool ConvGraph::Allows(const Descriptor& engine) const {
  const auto notes = engine.Get<cudnnBackendNumericalNote_t>(
      CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  return std::none_of(notes.begin(), notes.end(), [&](auto note) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
        return !tensor_cores_;
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
        return f32_;
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
        return true;
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
        return deterministic_;
      default:
        return false;
    }
  });
}

ConvPlan::ConvPlan(std::shared_ptr<const ConvGraph> graph,
                   const ConvChoice& choice)
    : graph_(std::move(graph)),
      choice_(choice),
      engine_(graph_->op(), CUDNN_BACKEND_ENGINE_DESCRIPTOR),
      config_(graph_->op(), CUDNN_BACKEND_ENGINECFG_DESCRIPTOR),
      plan_(graph_->op(), CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {}

std::shared_ptr<const ConvPlan> ConvPlan::Make(
    std::shared_ptr<const ConvGraph> graph, const ConvChoice& choice) {
  std::shared_ptr<ConvPlan> plan(new ConvPlan(std::move(graph), choice));
  return plan->Build() ? plan : nullptr;
}

bool ConvPlan::Build() {
  const char* op = graph_->op();
  engine_.Set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph_->graph());
  if (!engine_.TrySet(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, choice_.engine) ||
      !engine_.TryFinalize() || !graph_->Allows(engine_))
    return false;
  for (const auto& [type, value] : choice_.knobs) {
    Descriptor& knob =
        knobs_.emplace_back(op, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    if (!knob.TrySet(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                     static_cast<cudnnBackendKnobType_t>(type)) ||
        !knob.TrySet(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value) ||
        !knob.TryFinalize())
      return false;
  }
  config_.Set(CUDNN_ATTR_ENGINECFG_ENGINE, engine_);
  if (!knobs_.empty() &&
      !config_.TrySet(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, knobs_))
    return false;
  if (!config_.TryFinalize()) return false;
  MutexLock lock(mutex_);
  plan_.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, graph_->handle());
  plan_.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config_);
  if (!plan_.TryFinalize()) return false;
  workspace_bytes_ = plan_.GetInt(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  return true;
}

void ConvPlan::Run(cudnnHandle_t handle, const ConvOperands& operands,
                   void* workspace) const {
  const std::array<int64_t, 3> ids = {kX, kWeight, kY};
  const std::array<void*, 3> data = {operands.x, operands.weight, operands.y};
  Descriptor pack(graph_->op(), CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, All(ids));
  pack.Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span<void* const>(data));
  pack.Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  pack.Finalize();
  MutexLock lock(mutex_);
  CheckCudnn(graph_->op(),
             cudnnBackendExecute(handle, plan_.get(), pack.get()));
}

}  // namespace baton::cuda
