// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/fused_attention.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/cuda/capture.h"
#include "core/cuda/cudnn_graph.h"
#include "core/cuda/launch.h"
#include "core/log.h"
#include "core/lru_cache.h"
#include "core/precision.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

constexpr char kFusedOp[] = "attention";
// Versions of cuDNN: the first that sets its own sums to zero, and the last
// whose gradients are wrong unless the keys are whole blocks.
constexpr size_t kFirstVersion = 90600;
constexpr size_t kLastWholeBlocks = 91500;
constexpr int64_t kKeyBlock = 128;
constexpr auto kF32 = CUDNN_DATA_FLOAT;

using Id = CudnnGraph::Id;

CudnnForm FormOf(const Tensor& x) {
  CudnnForm form;
  for (size_t axis = 0; axis < 4; ++axis) {
    form.dims[axis] = x.dim(static_cast<int>(axis));
    form.strides[axis] = x.strides()[axis];
  }
  return form;
}

CudnnForm Transposed(CudnnForm form) {
  std::swap(form.dims[2], form.dims[3]);
  std::swap(form.strides[2], form.strides[3]);
  return form;
}

// The forms of tensors between the operations of a problem: [N, H, T, S] and
// [N, H, T, 1].
struct Forms {
  CudnnForm scores, rows;
};
Forms FormsOf(const FusedAttentionInputs& in) {
  const int64_t n = in.q.dim(0), h = in.q.dim(1), t = in.q.dim(2);
  return {DenseForm({n, h, t, in.k.dim(2)}), DenseForm({n, h, t, 1})};
}

cudnnDataType_t HalfTypeOf(const Tensor& x) {
  return x.dtype() == DType::kF16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
}

// The numbers of the graphs' tensors, in the order in which they are added.
struct ForwardIds {
  Id q, k, v, y, log_sums, scale, none;
};
struct BackwardIds {
  Id q, k, v, y, dy, log_sums, dq, dk, dv;
  Id row_sums, dq_sum;  // temporary memory
  Id scale, none, one;
};

Id Combined(CudnnGraph& graph, cudnnPointwiseMode_t mode, Id x, Id b,
            const CudnnForm& form) {
  const Id y = graph.Between(kF32, form);
  graph.Pointwise(mode, x, b, y);
  return y;
}

// Returns the scores, with `none` where the key comes after the query.
Id CausalScores(CudnnGraph& graph, Id scores, Id none, const CudnnForm& form) {
  const Id rows = graph.Between(CUDNN_DATA_INT32, form);
  const Id columns = graph.Between(CUDNN_DATA_INT32, form);
  const Id seen = graph.Between(CUDNN_DATA_BOOLEAN, form);
  const Id masked = graph.Between(kF32, form);
  graph.Positions(scores, 2, rows);
  graph.Positions(scores, 3, columns);
  graph.Pointwise(CUDNN_POINTWISE_CMP_GE, rows, columns, seen,
                  CUDNN_DATA_BOOLEAN);
  graph.Select(scores, none, seen, masked);
  return masked;
}

// Computes softmax(q k^T * scale) v, and the logarithms of the softmax's sums.
CudnnGraph ForwardGraph(const FusedAttentionInputs& in, const Tensor& y,
                        ForwardIds& ids) {
  CudnnGraph graph(kFusedOp);
  const auto [scores_form, rows_form] = FormsOf(in);
  const cudnnDataType_t type = HalfTypeOf(in.q);
  ids.q = graph.InMemory(type, FormOf(in.q));
  ids.k = graph.InMemory(type, Transposed(FormOf(in.k)));
  ids.v = graph.InMemory(type, FormOf(in.v));
  ids.y = graph.InMemory(type, FormOf(y));
  ids.log_sums = graph.InMemory(kF32, rows_form);
  ids.scale = graph.Scalar();
  ids.none = graph.Scalar();
  const Id products = graph.Between(kF32, scores_form);
  graph.Matmul(ids.q, ids.k, products);
  Id scores =
      Combined(graph, CUDNN_POINTWISE_MUL, products, ids.scale, scores_form);
  if (in.causal) scores = CausalScores(graph, scores, ids.none, scores_form);
  const Id most = graph.Between(kF32, rows_form);
  graph.Reduce(CUDNN_REDUCE_TENSOR_MAX, scores, most);
  const Id shifted =
      Combined(graph, CUDNN_POINTWISE_SUB, scores, most, scores_form);
  const Id exponentials =
      Combined(graph, CUDNN_POINTWISE_EXP, shifted, 0, scores_form);
  const Id sums = graph.Between(kF32, rows_form);
  graph.Reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, sums);
  const Id logs = Combined(graph, CUDNN_POINTWISE_LOG, sums, 0, rows_form);
  graph.Pointwise(CUDNN_POINTWISE_ADD, most, logs, ids.log_sums);
  const Id weights = graph.Between(type, scores_form);
  graph.Pointwise(CUDNN_POINTWISE_DIV, exponentials, sums, weights);
  graph.Matmul(weights, ids.v, ids.y);
  return graph;
}

// Returns x^T as an operand of `type`: [N, H, S, T].
Id TransposedScores(CudnnGraph& graph, Id x, cudnnDataType_t type,
                    const CudnnForm& scores_form) {
  const Id y = graph.Between(type, Transposed(scores_form));
  graph.Reshape(x, y);
  return y;
}

void AddMemory(CudnnGraph& graph, const FusedAttentionInputs& in,
               const Tensor& y, const Tensor& dy,
               const std::array<const Tensor*, 3>& grads, BackwardIds& ids) {
  const cudnnDataType_t type = HalfTypeOf(in.q);
  const CudnnForm rows_form = FormsOf(in).rows;
  ids.q = graph.InMemory(type, FormOf(in.q));
  ids.k = graph.InMemory(type, Transposed(FormOf(in.k)));
  ids.v = graph.InMemory(type, Transposed(FormOf(in.v)));
  ids.y = graph.InMemory(type, FormOf(y));
  ids.dy = graph.InMemory(type, FormOf(dy));
  ids.log_sums = graph.InMemory(kF32, rows_form);
  ids.dq = graph.InMemory(type, FormOf(*grads[0]));
  ids.dk = graph.InMemory(type, FormOf(*grads[1]));
  ids.dv = graph.InMemory(type, FormOf(*grads[2]));
  ids.row_sums = graph.InMemory(kF32, rows_form);
  ids.dq_sum = graph.InMemory(kF32, DenseForm(FormOf(in.q).dims));
  ids.scale = graph.Scalar();
  ids.none = graph.Scalar();
  ids.one = graph.Scalar();
}

// Computes the weights again from the logarithms of sums, and dv from them.
// With dy v^T and the sums of dy * y over rows it computes the gradient of the
// scores, and from that dk and dq. cuDNN recognises this chain by its
// operations and their order.
CudnnGraph BackwardGraph(const FusedAttentionInputs& in, const Tensor& y,
                         const Tensor& dy,
                         const std::array<const Tensor*, 3>& grads,
                         BackwardIds& ids) {
  CudnnGraph graph(kFusedOp);
  const auto [scores_form, rows_form] = FormsOf(in);
  const cudnnDataType_t type = HalfTypeOf(in.q);
  AddMemory(graph, in, y, dy, grads, ids);
  const Id dy_y = Combined(graph, CUDNN_POINTWISE_MUL, ids.dy, ids.y,
                           DenseForm(FormOf(y).dims));
  const Id sums = graph.Between(kF32, rows_form);
  graph.Reduce(CUDNN_REDUCE_TENSOR_ADD, dy_y, sums);
  graph.Pointwise(CUDNN_POINTWISE_MUL, sums, ids.one, ids.row_sums);

  const Id products = graph.Between(kF32, scores_form);
  graph.Matmul(ids.q, ids.k, products);
  Id scores =
      Combined(graph, CUDNN_POINTWISE_MUL, products, ids.scale, scores_form);
  scores =
      Combined(graph, CUDNN_POINTWISE_SUB, scores, ids.log_sums, scores_form);
  if (in.causal) scores = CausalScores(graph, scores, ids.none, scores_form);
  const Id weights =
      Combined(graph, CUDNN_POINTWISE_EXP, scores, 0, scores_form);
  graph.Matmul(TransposedScores(graph, weights, type, scores_form), ids.dy,
               ids.dv);

  const Id dweights = graph.Between(kF32, scores_form);
  graph.Matmul(ids.dy, ids.v, dweights);
  Id dscores =
      Combined(graph, CUDNN_POINTWISE_SUB, dweights, ids.row_sums, scores_form);
  dscores = Combined(graph, CUDNN_POINTWISE_MUL, dscores, weights, scores_form);
  dscores =
      Combined(graph, CUDNN_POINTWISE_MUL, dscores, ids.scale, scores_form);
  graph.Matmul(TransposedScores(graph, dscores, type, scores_form), ids.q,
               ids.dk);

  const Id k = graph.Between(kF32, FormOf(in.k));
  graph.Reshape(ids.k, k);
  graph.Matmul(dscores, k, ids.dq_sum);
  graph.Pointwise(CUDNN_POINTWISE_IDENTITY, ids.dq_sum, 0, ids.dq);
  return graph;
}

// Returns whether all rows of heads begin and end at multiples of 16 bytes.
bool Suits(const Tensor& x) {
  const auto& strides = x.strides();
  return strides[3] == 1 && x.dim(3) % 8 == 0 && strides[0] % 8 == 0 &&
         strides[1] % 8 == 0 && strides[2] % 8 == 0 &&
         reinterpret_cast<uintptr_t>(x.raw_data()) % 16 == 0;
}

bool Suits(const FusedAttentionInputs& in,
           std::initializer_list<const Tensor*> others) {
  bool suits = cudnnGetVersion() >= kFirstVersion && IsHalf(in.q.dtype()) &&
               Suits(in.q) && Suits(in.k) && Suits(in.v) &&
               (!in.causal || in.q.dim(2) == in.k.dim(2));
  for (const Tensor* x : others) suits = suits && Suits(*x);
  return suits;
}

// Everything that decides how cuDNN runs an attention.
std::vector<int64_t> FusedKey(const Launch& launch, bool backward,
                              const FusedAttentionInputs& in,
                              std::initializer_list<const Tensor*> tensors) {
  std::vector<int64_t> key = {launch.device(), backward, in.causal,
                              Deterministic(),
                              static_cast<int64_t>(in.q.dtype())};
  for (const Tensor* x : tensors) {
    key.insert(key.end(), x->shape().begin(), x->shape().end());
    key.insert(key.end(), x->strides().begin(), x->strides().end());
  }
  return key;
}

template <typename Ids>
struct Prepared {
  Ids ids = {};
  std::shared_ptr<const CudnnPlan> plan;  // null if cuDNN has none
};
// Never destroyed, because cuDNN may be gone by then.
template <typename Ids>
LruCache<std::vector<int64_t>, Prepared<Ids>>& PreparedOf() {
  static auto* const cache =
      new LruCache<std::vector<int64_t>, Prepared<Ids>>(1024);
  return *cache;
}

// Returns the plan for the graph that make(ids) returns, on the handle's GPU.
template <typename Ids, typename Make>
std::shared_ptr<const Prepared<Ids>> Prepare(const std::vector<int64_t>& key,
                                             cudnnHandle_t handle, Make make) {
  return PreparedOf<Ids>().GetOrMake(key, [&] {
    const RelaxedCapture relaxed;  // plans load kernels
    auto prepared = std::make_shared<Prepared<Ids>>();
    const absl::Status status = CatchErrors([&] {
      prepared->plan =
          CudnnPlan::Make(make(prepared->ids), handle, Deterministic());
    });
    if (!prepared->plan) {
      LogInfo("attention: cuDNN has no kernel for this, it goes in blocks: ",
              status.ok() ? "none was suggested" : status.ToString());
    }
    return prepared;
  });
}

Tensor WorkspaceOf(const CudnnPlan& plan, const Launch& launch) {
  return Tensor::Empty(
      {plan.workspace_bytes()},
      {.dtype = DType::kU8, .device = Device::Cuda(launch.device())});
}

struct Operand {
  Id id;
  void* data;
};

void RunFused(const CudnnPlan& plan, const Launch& launch, cudnnHandle_t handle,
              const std::vector<Operand>& operands) {
  std::vector<int64_t> ids;
  std::vector<void*> data;
  for (const Operand& operand : operands) {
    ids.push_back(operand.id);
    data.push_back(operand.data);
  }
  const Tensor workspace = WorkspaceOf(plan, launch);
  plan.Run(handle, ids, data, workspace.raw_data());
}

}  // namespace

bool TryFusedAttention(const FusedAttentionInputs& in, const Tensor& y,
                       const Tensor& log_sums) {
  if (!Suits(in, {&y})) return false;
  const Launch launch(kFusedOp, {&y, &log_sums}, {&in.q, &in.k, &in.v});
  cudnnHandle_t handle =
      CudnnHandle(kFusedOp, launch.device(), launch.stream());
  const auto prepared = Prepare<ForwardIds>(
      FusedKey(launch, false, in, {&in.q, &in.k, &in.v, &y}), handle,
      [&](ForwardIds& ids) { return ForwardGraph(in, y, ids); });
  if (!prepared->plan) return false;
  const ForwardIds& ids = prepared->ids;
  auto scale = static_cast<float>(in.scale);
  float none = -std::numeric_limits<float>::infinity();
  std::vector<Operand> operands = {{ids.q, in.q.raw_data()},
                                   {ids.k, in.k.raw_data()},
                                   {ids.v, in.v.raw_data()},
                                   {ids.y, y.raw_data()},
                                   {ids.log_sums, log_sums.raw_data()},
                                   {ids.scale, &scale}};
  if (in.causal) operands.push_back({ids.none, &none});
  RunFused(*prepared->plan, launch, handle, operands);
  return true;
}

bool TryFusedAttentionBackward(const FusedAttentionInputs& in, const Tensor& y,
                               const Tensor& log_sums, const Tensor& dy,
                               const Tensor& dq, const Tensor& dk,
                               const Tensor& dv) {
  const bool whole_blocks = in.k.dim(2) % kKeyBlock == 0;
  if (!Suits(in, {&y, &dy, &dq, &dk, &dv}) ||
      (!whole_blocks && cudnnGetVersion() <= kLastWholeBlocks))
    return false;
  const TensorOptions sums = {.device = in.q.device()};
  const Tensor row_sums = Tensor::Empty(log_sums.shape(), sums);
  const Tensor dq_sum = Tensor::Empty(in.q.shape(), sums);
  const Launch launch(kFusedOp, {&dq, &dk, &dv, &row_sums, &dq_sum},
                      {&in.q, &in.k, &in.v, &y, &log_sums, &dy});
  cudnnHandle_t handle =
      CudnnHandle(kFusedOp, launch.device(), launch.stream());
  const auto prepared = Prepare<BackwardIds>(
      FusedKey(launch, true, in, {&in.q, &in.k, &in.v, &y, &dy, &dq, &dk, &dv}),
      handle, [&](BackwardIds& ids) {
        return BackwardGraph(in, y, dy, {&dq, &dk, &dv}, ids);
      });
  if (!prepared->plan) return false;
  const BackwardIds& ids = prepared->ids;
  auto scale = static_cast<float>(in.scale);
  float none = -std::numeric_limits<float>::infinity(), one = 1;
  std::vector<Operand> operands = {{ids.q, in.q.raw_data()},
                                   {ids.k, in.k.raw_data()},
                                   {ids.v, in.v.raw_data()},
                                   {ids.y, y.raw_data()},
                                   {ids.dy, dy.raw_data()},
                                   {ids.log_sums, log_sums.raw_data()},
                                   {ids.dq, dq.raw_data()},
                                   {ids.dk, dk.raw_data()},
                                   {ids.dv, dv.raw_data()},
                                   {ids.row_sums, row_sums.raw_data()},
                                   {ids.dq_sum, dq_sum.raw_data()},
                                   {ids.scale, &scale},
                                   {ids.one, &one}};
  if (in.causal) operands.push_back({ids.none, &none});
  RunFused(*prepared->plan, launch, handle, operands);
  return true;
}

}  // namespace baton::cuda
