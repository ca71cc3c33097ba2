// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/data_parallel/gradient_buckets.h"

#include <algorithm>
#include <utility>

#include "core/ops/arithmetic.h"
#include "core/ops/multi_tensor.h"
#include "core/status.h"

namespace baton::dist {
namespace {

bool FitTogether(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.device() == b.device();
}

// The bytes of a GPU's cache line: libraries require operands to begin at one,
// and copies from there are fastest.
constexpr int64_t kLine = 128;

int64_t SpaceOf(const Tensor& tensor) {
  if (!tensor.device().is_cuda()) return tensor.numel();
  const int64_t line = kLine / static_cast<int64_t>(SizeOf(tensor.dtype()));
  return (tensor.numel() + line - 1) / line * line;
}

}  // namespace

FlatTensor FlatTensor::Like(const std::vector<Tensor>& tensors,
                            int64_t multiple) {
  int64_t count = 0;
  for (const Tensor& tensor : tensors) {
    Require(FitTogether(tensor, tensors.front()), "flat_tensor",
            tensor.ToString(), " beside ", tensors.front().ToString());
    Require(tensor.IsContiguous() ||
                tensor.IsContiguous(MemoryFormat::kChannelsLast),
            "flat_tensor", "a tensor with gaps: ", tensor.ToString());
    count += SpaceOf(tensor);
  }
  count = (count + multiple - 1) / multiple * multiple;
  FlatTensor flat{Tensor::Zeros({count}, {.dtype = tensors.front().dtype(),
                                          .device = tensors.front().device()})};
  int64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    flat.parts.push_back(Tensor::FromStorage(flat.all.storage(), tensor.dtype(),
                                             tensor.shape(), tensor.strides(),
                                             flat.all.offset() + offset));
    offset += SpaceOf(tensor);
  }
  return flat;
}

std::vector<std::vector<size_t>> PlacesByKind(
    const std::vector<Tensor>& tensors) {
  std::vector<std::vector<size_t>> kinds;
  for (size_t i = 0; i < tensors.size(); ++i) {
    auto kind = kinds.begin();
    while (kind != kinds.end() &&
           !FitTogether(tensors[kind->front()], tensors[i]))
      ++kind;
    if (kind == kinds.end()) kind = kinds.emplace(kind);
    kind->push_back(i);
  }
  return kinds;
}

GradientBuckets::GradientBuckets(std::vector<Variable> parameters,
                                 const std::vector<size_t>& order,
                                 const BucketSizes& sizes, int64_t multiple)
    : parameters_(std::move(parameters)), places_(parameters_.size()) {
  // One bucket of each kind; the one that was added to last is at the end.
  std::vector<Filling> filling;
  const auto close_all = [&] {
    for (Filling& each : filling) Close(std::move(each), multiple);
    filling.clear();
  };
  size_t left = 0;  // bytes
  for (const size_t i : order) left += parameters_[i].tensor().nbytes();
  bool at_the_end = false;
  for (const size_t i : order) {
    const Tensor& tensor = parameters_[i].tensor();
    if (left <= sizes.last && !std::exchange(at_the_end, true)) close_all();
    left -= tensor.nbytes();
    const size_t most = buckets_.empty() ? sizes.first : sizes.others;
    Filling next;
    for (auto it = filling.begin(); it != filling.end(); ++it) {
      if (!FitTogether(tensor, it->tensors.front())) continue;
      next = std::move(*it);
      filling.erase(it);
      break;
    }
    if (next.bytes > 0 && next.bytes + tensor.nbytes() > most)
      Close(std::exchange(next, {}), multiple);
    next.tensors.push_back(tensor);
    next.parameters.push_back(i);
    next.bytes += tensor.nbytes();
    filling.push_back(std::move(next));
  }
  close_all();
  Begin();
}

void GradientBuckets::Close(Filling filling, int64_t multiple) {
  for (size_t part = 0; part < filling.parameters.size(); ++part)
    places_[filling.parameters[part]] = {.bucket = buckets_.size(),
                                         .part = part};
  order_.push_back(buckets_.size());
  buckets_.push_back({.flat = FlatTensor::Like(filling.tensors, multiple),
                      .parameters = std::move(filling.parameters)});
}

const Tensor& GradientBuckets::view(size_t parameter) const {
  const Place& place = places_[parameter];
  return buckets_[place.bucket].flat.parts[place.part];
}

void GradientBuckets::Reorder(const std::vector<size_t>& parameters) {
  std::vector<size_t> last(buckets_.size());  // place in `parameters`
  for (size_t i = 0; i < parameters.size(); ++i)
    last[places_[parameters[i]].bucket] = i;
  std::sort(order_.begin(), order_.end(),
            [&](size_t a, size_t b) { return last[a] < last[b]; });
}

void GradientBuckets::Begin() {
  for (Bucket& bucket : buckets_) {
    bucket.missing = bucket.parameters.size();
    bucket.views.clear();
    bucket.gradients.clear();
  }
  for (Place& place : places_) place.has = false;
  ready_ = 0;
}

size_t GradientBuckets::Put(size_t parameter, const Gradient& gradient) {
  Place& place = places_[parameter];
  Bucket& bucket = buckets_[place.bucket];
  const Tensor& view = this->view(parameter);
  const Gradient before = parameters_[parameter].gradient();
  Tensor dense = gradient.defined() ? gradient.Dense() : Tensor();
  if (before.defined()) {
    if (!SameView(before.values(), view)) view.CopyFrom(before.Dense());
    if (dense.defined()) ops::AddInto(view, dense.To(view.dtype()));
  } else if (dense.defined() && view.device().is_cuda()) {
    bucket.views.push_back(view);
    bucket.gradients.push_back(std::move(dense));
  } else if (dense.defined()) {
    view.CopyFrom(dense);
  } else {
    view.Fill(0);
  }
  if (!place.has) --bucket.missing;
  place.has = before.defined() || gradient.defined();
  if (bucket.missing == 0) Fill(bucket);
  while (ready_ < order_.size() && buckets_[order_[ready_]].missing == 0)
    ++ready_;
  return ready_;
}

// One launch per gradient would take as long as the bytes do.
void GradientBuckets::Fill(Bucket& bucket) {
  ops::CastMany(bucket.views, bucket.gradients);
  bucket.views.clear();
  bucket.gradients.clear();
}

void GradientBuckets::PutTheRest() {
  for (const Bucket& bucket : buckets_) {
    if (bucket.missing == 0) continue;
    for (const size_t parameter : bucket.parameters)
      if (!places_[parameter].has) Put(parameter, Gradient());
  }
}

void GradientBuckets::FillWithZeros() {
  for (const Bucket& bucket : buckets_) bucket.flat.all.Fill(0);
}

}  // namespace baton::dist
