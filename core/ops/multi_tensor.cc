// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/multi_tensor.h"

#include <cmath>
#include <functional>
#include <map>

#include "core/cpu/copy.h"
#include "core/cuda/multi_tensor.h"
#include "core/ops/arithmetic.h"
#include "core/ops/checks.h"
#include "core/ops/reduce.h"

namespace baton::ops {
namespace {

// Returns true if both are dense and have one memory order, so that element i
// of one in memory belongs to element i of the other.
bool LieAlike(const Tensor& a, const Tensor& b) {
  for (MemoryFormat format :
       {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast}) {
    if (a.IsContiguous(format) && b.IsContiguous(format)) return true;
  }
  return false;
}

void CheckPairs(const char* op, const std::vector<Tensor>& targets,
                const std::vector<Tensor>& sources) {
  Require(targets.size() == sources.size(), op, targets.size(), " targets for ",
          sources.size(), " sources");
  for (size_t i = 0; i < targets.size(); ++i) {
    RequireOneDevice(op, targets[i], sources[i]);
    RequireFloating(op, targets[i]);
    RequireFloating(op, sources[i]);
    RequireSameShape(op, targets[i], sources[i]);
    RequireWritable(op, targets[i]);
  }
}

void CheckAdds(const char* op, DType target, DType source) {
  const bool widens = target == DType::kF32 &&
                      (source == DType::kBF16 || source == DType::kF16);
  Require(target == source || widens, op, "cannot add ", Name(source), " to ",
          Name(target));
}

using PairsByGpu = std::map<int, std::vector<cuda::TensorPair>>;

// Returns, for each GPU, the pairs that are dense and in one memory order;
// calls single(target, source) for all others.
PairsByGpu Sorted(
    const std::vector<Tensor>& targets, const std::vector<Tensor>& sources,
    const std::function<void(const Tensor&, const Tensor&)>& single) {
  PairsByGpu pairs;
  for (size_t i = 0; i < targets.size(); ++i) {
    const Tensor& target = targets[i];
    const Device device = target.device();
    const bool shared = target.storage() == sources[i].storage();
    if (device.is_cuda() && !shared && LieAlike(target, sources[i])) {
      target.PrepareWrite();
      pairs[device.index()].push_back({target, sources[i]});
    } else {
      single(target, sources[i]);
    }
  }
  return pairs;
}

void BumpVersions(const PairsByGpu& pairs) {
  for (const auto& [gpu, group] : pairs) {
    for (const cuda::TensorPair& pair : group) pair.target.BumpVersion();
  }
}

void CheckUnscale(const char* op, const Tensor& target, const Tensor& source,
                  const Tensor& scale, const Tensor& not_finite) {
  Require(target.dtype() == DType::kF32 && source.dtype() != DType::kF64, op,
          "cannot unscale ", Name(source.dtype()), " into ",
          Name(target.dtype()));
  for (const Tensor* scalar : {&scale, &not_finite}) {
    if (scalar == &not_finite && !scalar->defined()) continue;
    RequireOneDevice(op, target, *scalar);
    Require(scalar->numel() == 1 && scalar->dtype() == DType::kF32, op,
            "expected f32 [], got ", scalar->ToString());
  }
}

void UnscaleOnCpu(const Tensor& target, const Tensor& source,
                  const Tensor& scale, const Tensor& not_finite) {
  target.CopyFrom(source);
  ScaleInto(target, 1 / *scale.data<float>());
  // Zero times an infinity or NaN is not zero.
  const double zero = Sum(MulScalar(source.To(DType::kF32), 0)).Item();
  if (zero != 0 && not_finite.defined()) not_finite.Fill(1);
}

}  // namespace

void AddIntoMany(const std::vector<Tensor>& targets,
                 const std::vector<Tensor>& sources) {
  constexpr char kOp[] = "add_into_many";
  CheckPairs(kOp, targets, sources);
  for (size_t i = 0; i < targets.size(); ++i)
    CheckAdds(kOp, targets[i].dtype(), sources[i].dtype());
  const PairsByGpu pairs =
      Sorted(targets, sources, [](const Tensor& target, const Tensor& source) {
        AddInto(target, source.To(target.dtype()));
      });
  for (const auto& [gpu, group] : pairs) cuda::AddPairs(group);
  BumpVersions(pairs);
}

void CastMany(const std::vector<Tensor>& targets,
              const std::vector<Tensor>& sources) {
  CheckPairs("cast_many", targets, sources);
  const PairsByGpu pairs =
      Sorted(targets, sources, [](const Tensor& target, const Tensor& source) {
        target.CopyFrom(source);
      });
  for (const auto& [gpu, group] : pairs) cuda::CopyPairs(group);
  BumpVersions(pairs);
}

std::vector<Tensor> CloneMany(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  std::map<int, std::vector<cuda::TensorPair>> pairs;  // by GPU
  for (const Tensor& x : tensors) {
    if (!x.defined() || x.device().is_cpu()) {
      copies.push_back(x.defined() ? x.Clone() : Tensor());
      continue;
    }
    const Tensor& copy = copies.emplace_back(Tensor::EmptyLike(x));
    if (LieAlike(copy, x)) {
      pairs[x.device().index()].push_back({copy, x});
    } else {
      copy.CopyFrom(x);
    }
  }
  for (const auto& [gpu, group] : pairs) cuda::CopyPairsIf(Tensor(), group);
  return copies;
}

void CopyManyIf(const Tensor& condition, const std::vector<Tensor>& targets,
                const std::vector<Tensor>& sources) {
  constexpr char kOp[] = "copy_many_if";
  Require(targets.size() == sources.size(), kOp, targets.size(),
          " targets for ", sources.size(), " sources");
  std::vector<cuda::TensorPair> pairs;
  for (size_t i = 0; i < targets.size(); ++i) {
    const Tensor& target = targets[i];
    if (condition.defined()) RequireOneDevice(kOp, target, condition);
    RequireOneDevice(kOp, target, targets.front());
    RequireOneDevice(kOp, target, sources[i]);
    RequireSameShape(kOp, target, sources[i]);
    Require(
        target.dtype() == sources[i].dtype() && LieAlike(target, sources[i]),
        kOp, "expected pairs of one dtype and memory order");
    target.PrepareWrite();
    pairs.push_back({target, sources[i]});
  }
  if (pairs.empty()) return;
  if (pairs.front().target.device().is_cuda()) {
    cuda::CopyPairsIf(condition, pairs);
  } else if (!condition.defined() || condition.Item() != 0) {
    for (const auto& [target, source] : pairs) cpu::Copy(target, source);
  }
  for (const Tensor& target : targets) target.BumpVersion();
}

void UnscaleMany(const std::vector<Tensor>& targets,
                 const std::vector<Tensor>& sources, const Tensor& scale,
                 const Tensor& not_finite) {
  constexpr char kOp[] = "unscale_many";
  CheckPairs(kOp, targets, sources);
  std::vector<cuda::TensorPair> pairs;
  for (size_t i = 0; i < targets.size(); ++i) {
    const Tensor& target = targets[i];
    CheckUnscale(kOp, target, sources[i], scale, not_finite);
    if (target.numel() == 0) continue;
    if (target.device().is_cpu()) {
      UnscaleOnCpu(target, sources[i], scale, not_finite);
      continue;
    }
    Require(LieAlike(target, target), kOp, "expected a dense target");
    const bool alike = LieAlike(target, sources[i]);
    pairs.push_back(
        {target,
         alike ? sources[i] : sources[i].Contiguous(target.SuggestFormat())});
    target.PrepareWrite();
    target.BumpVersion();
  }
  if (not_finite.defined()) not_finite.PrepareWrite();
  if (!pairs.empty()) cuda::UnscalePairs(pairs, scale, not_finite);
  if (not_finite.defined()) not_finite.BumpVersion();
}

Tensor SquareSum(const std::vector<Tensor>& tensors) {
  constexpr char kOp[] = "square_sum";
  Require(!tensors.empty(), kOp, "no tensors");
  const Device device = tensors.front().device();
  std::vector<Tensor> dense;
  for (const Tensor& tensor : tensors) {
    RequireOneDevice(kOp, tensors.front(), tensor);
    RequireFloating(kOp, tensor);
    dense.push_back(LieAlike(tensor, tensor) ? tensor : tensor.Contiguous());
  }
  if (device.is_cuda()) return Sum(cuda::SquareSums(dense));
  double sum = 0;
  for (const Tensor& tensor : dense) {
    const bool small = SizeOf(tensor.dtype()) < SizeOf(DType::kF32);
    const Tensor x = small ? tensor.To(DType::kF32) : tensor;
    sum += Sum(Mul(x, x)).Item();
  }
  return Tensor::Scalar(sum, DType::kF64);
}

void ZeroMany(const std::vector<Tensor>& targets) {
  constexpr char kOp[] = "zero_many";
  for (const Tensor& target : targets) {
    RequireOneDevice(kOp, target);
    RequireFloating(kOp, target);
    RequireWritable(kOp, target);
  }
  std::map<int, std::vector<Tensor>> by_gpu;
  for (const Tensor& target : targets) {
    if (target.device().is_cuda() && LieAlike(target, target)) {
      target.PrepareWrite();
      by_gpu[target.device().index()].push_back(target);
      target.BumpVersion();
    } else {
      target.Fill(0);
    }
  }
  for (const auto& [gpu, group] : by_gpu) cuda::ZeroTensors(group);
}

}  // namespace baton::ops
