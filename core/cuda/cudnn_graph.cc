// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/cudnn_graph.h"

#include <algorithm>
#include <utility>

#include "core/status.h"

namespace baton::cuda {
namespace {

constexpr size_t kMostConfigs = 16;

}  // namespace

CudnnForm DenseForm(const std::array<int64_t, 4>& dims) {
  CudnnForm form{.dims = dims};
  for (size_t axis = 3; axis-- > 0;)
    form.strides[axis] = form.strides[axis + 1] * dims[axis + 1];
  return form;
}

Descriptor& CudnnGraph::NewTensor(cudnnDataType_t type, const CudnnForm& form) {
  Descriptor& tensor =
      tensors_.emplace_back(op_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID,
             static_cast<int64_t>(tensors_.size()));
  tensor.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  tensor.Set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const int64_t>(form.dims));
  tensor.Set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const int64_t>(form.strides));
  tensor.Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16});
  return tensor;
}

CudnnGraph::Id CudnnGraph::InMemory(cudnnDataType_t type,
                                    const CudnnForm& form) {
  NewTensor(type, form).Finalize();
  return static_cast<Id>(tensors_.size());
}

CudnnGraph::Id CudnnGraph::Between(cudnnDataType_t type,
                                   const CudnnForm& form) {
  Descriptor& tensor = NewTensor(type, form);
  tensor.Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  tensor.Finalize();
  return static_cast<Id>(tensors_.size());
}

CudnnGraph::Id CudnnGraph::Scalar() {
  Descriptor& tensor = NewTensor(CUDNN_DATA_FLOAT, {});
  tensor.Set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  tensor.Finalize();
  return static_cast<Id>(tensors_.size());
}

template <typename SetAttributes>
void CudnnGraph::Add(cudnnBackendDescriptorType_t type, Descriptor of,
                     SetAttributes set) {
  const Descriptor& kind = kinds_.emplace_back(std::move(of));
  Descriptor& operation = operations_.emplace_back(op_, type);
  set(operation, kind);
  operation.Finalize();
}

void CudnnGraph::Matmul(Id a, Id b, Id product) {
  Descriptor matmul(op_, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  matmul.Set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  matmul.Finalize();
  Add(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, std::move(matmul),
      [&](Descriptor& operation, const Descriptor& kind) {
        operation.Set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, At(a));
        operation.Set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, At(b));
        operation.Set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, At(product));
        operation.Set(CUDNN_ATTR_OPERATION_MATMUL_DESC, kind);
      });
}

Descriptor CudnnGraph::PointwiseKind(cudnnPointwiseMode_t mode,
                                     cudnnDataType_t precision) const {
  Descriptor kind(op_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  kind.Set(CUDNN_ATTR_POINTWISE_MODE, mode);
  kind.Set(CUDNN_ATTR_POINTWISE_MATH_PREC, precision);
  return kind;
}

void CudnnGraph::Pointwise(cudnnPointwiseMode_t mode, Id x, Id b, Id y,
                           cudnnDataType_t precision) {
  Descriptor pointwise = PointwiseKind(mode, precision);
  pointwise.Finalize();
  Add(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, std::move(pointwise),
      [&](Descriptor& operation, const Descriptor& kind) {
        operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
        operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, At(x));
        if (b != 0) operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, At(b));
        operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, At(y));
      });
}

void CudnnGraph::Select(Id x, Id b, Id condition, Id y) {
  Descriptor select =
      PointwiseKind(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT);
  select.Finalize();
  Add(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, std::move(select),
      [&](Descriptor& operation, const Descriptor& kind) {
        operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
        operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, At(x));
        operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, At(b));
        operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, At(condition));
        operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, At(y));
      });
}

void CudnnGraph::Positions(Id x, int64_t axis, Id y) {
  Descriptor positions =
      PointwiseKind(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT);
  positions.Set(CUDNN_ATTR_POINTWISE_AXIS, axis);
  positions.Finalize();
  Add(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, std::move(positions),
      [&](Descriptor& operation, const Descriptor& kind) {
        operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
        operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, At(x));
        operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, At(y));
      });
}

void CudnnGraph::Reduce(cudnnReduceTensorOp_t mode, Id x, Id y) {
  Descriptor reduction(op_, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  reduction.Set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  reduction.Set(CUDNN_ATTR_REDUCTION_OPERATOR, mode);
  reduction.Finalize();
  Add(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, std::move(reduction),
      [&](Descriptor& operation, const Descriptor& kind) {
        operation.Set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, kind);
        operation.Set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, At(x));
        operation.Set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, At(y));
      });
}

void CudnnGraph::Reshape(Id x, Id y) {
  Descriptor& operation =
      operations_.emplace_back(op_, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.Set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, At(x));
  operation.Set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, At(y));
  operation.Finalize();
}

CudnnPlan::CudnnPlan(CudnnGraph graph)
    : graph_(std::move(graph)),
      operations_(graph_.op(), CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {}

std::shared_ptr<const CudnnPlan> CudnnPlan::Make(CudnnGraph graph,
                                                 cudnnHandle_t handle,
                                                 bool deterministic) {
  std::shared_ptr<CudnnPlan> plan(new CudnnPlan(std::move(graph)));
  return plan->Build(handle, deterministic) ? plan : nullptr;
}

bool CudnnPlan::Build(cudnnHandle_t handle, bool deterministic) {
  const char* op = graph_.op();
  operations_.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, graph_.operations());
  operations_.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  if (!operations_.TryFinalize()) return false;
  Descriptor heuristics(op, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations_);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A);
  if (!heuristics.TryFinalize()) return false;
  configs_ = heuristics.GetDescriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                                       kMostConfigs);
  MutexLock lock(mutex_);
  for (const Descriptor& config : configs_) {
    const std::vector<Descriptor> engine = config.GetDescriptors(
        CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
    const auto notes = engine.at(0).Get<cudnnBackendNumericalNote_t>(
        CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
    const bool varies =
        std::find(notes.begin(), notes.end(),
                  CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) != notes.end();
    if (deterministic && varies) continue;
    Descriptor plan(op, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
    plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    if (!plan.TryFinalize()) continue;
    workspace_bytes_ = plan.GetInt(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
    plan_.push_back(std::move(plan));
    return true;
  }
  return false;
}

void CudnnPlan::Run(cudnnHandle_t handle, std::span<const int64_t> ids,
                    std::span<void* const> data, void* workspace) const {
  Descriptor pack(graph_.op(), CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, data);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  pack.Finalize();
  MutexLock lock(mutex_);
  CheckCudnn(graph_.op(),
             cudnnBackendExecute(handle, plan_.front().get(), pack.get()));
}

}  // namespace baton::cuda
