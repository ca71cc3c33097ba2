// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "autograd/gradient.h"
#include "autograd/variable.h"
#include "core/tensor.h"

namespace baton::dist {

// Tensors of one dtype and device side by side in one.
struct FlatTensor {
  Tensor all;                      // [elements of all]
  std::vector<Tensor> parts = {};  // views of it, in the memory order of each

  // Zeros, with parts like these, each of which is dense; filled up to a
  // multiple of so many elements. On a GPU parts begin at whole lines.
  static FlatTensor Like(const std::vector<Tensor>& tensors,
                         int64_t multiple = 1);
};

// The places of those that fit into one such tensor, for each kind that there
// is.
std::vector<std::vector<size_t>> PlacesByKind(
    const std::vector<Tensor>& tensors);

struct BucketSizes {
  size_t first = size_t{1} << 20;  // bytes: soon there, for an early begin
  size_t others = size_t{25} << 20;
  // At most so many at the end are apart, so that little is left to wait for.
  size_t last = size_t{1} << 20;
};

// The gradients of many parameters in few tensors, so that what is done to all
// of them can begin while others are still being computed. A pass puts them in
// one by one; a bucket is ready when all of its gradients are there and the
// buckets before it are ready. Thread-compatible.
class GradientBuckets {
 public:
  // `order`: in which they are expected, by their places in `parameters`; those
  // of one dtype and device lie together, and buckets come in the order of
  // their last ones. `multiple`: of each bucket's elements, as FlatTensor::Like
  // has it.
  GradientBuckets(std::vector<Variable> parameters,
                  const std::vector<size_t>& order, const BucketSizes& sizes,
                  int64_t multiple = 1);

  size_t size() const { return buckets_.size(); }
  const Tensor& all(size_t bucket) const { return buckets_[bucket].flat.all; }
  const Tensor& view(size_t parameter) const;
  // By the parts of the bucket.
  const std::vector<size_t>& parameters(size_t bucket) const {
    return buckets_[bucket].parameters;
  }
  bool has(size_t parameter) const { return places_[parameter].has; }

  void Begin();
  // Copies the gradient, or its sum with what the parameter has as gradient
  // already; on a GPU once its bucket is ready, with the others of it. Gives
  // the number of buckets that are ready from now on.
  size_t Put(size_t parameter, const Gradient& gradient);
  // Those that have not come are zeros, or what the parameter has already.
  void PutTheRest();
  void FillWithZeros();

 private:
  struct Bucket {
    FlatTensor flat;
    std::vector<size_t> parameters;  // by part
    size_t missing = 0;
    std::vector<Tensor> views = {}, gradients = {};  // to be copied when ready
  };
  struct Place {
    size_t bucket = 0, part = 0;
    bool has = false;  // in this pass
  };

  const std::vector<Variable> parameters_;
  // What is to become a bucket: tensors of one dtype and device.
  struct Filling {
    std::vector<Tensor> tensors = {};
    std::vector<size_t> parameters = {};
    size_t bytes = 0;
  };
  void Close(Filling filling, int64_t multiple);
  static void Fill(Bucket& bucket);

  std::vector<Bucket> buckets_;
  std::vector<Place> places_;  // by parameter
  size_t ready_ = 0;           // buckets
};

}  // namespace baton::dist
