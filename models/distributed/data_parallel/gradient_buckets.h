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

// Several tensors of one dtype and device in one contiguous tensor.
struct FlatTensor {
  Tensor all;                      // [number of all elements]
  std::vector<Tensor> parts = {};  // views of it, in the memory order of each

  // Returns zeros, with parts shaped as `tensors`, each of which is dense. The
  // size is rounded up to a multiple of `multiple` elements. On a GPU each part
  // begins at a cache line.
  static FlatTensor Like(const std::vector<Tensor>& tensors,
                         int64_t multiple = 1);
};

// Groups tensors that fit into one FlatTensor; returns their indices, by group.
std::vector<std::vector<size_t>> PlacesByKind(
    const std::vector<Tensor>& tensors);

struct BucketSizes {
  size_t first = size_t{1} << 20;  // bytes; small, so that it is ready early
  size_t others = size_t{25} << 20;
  // The last gradients, up to this size, get buckets of their own, so that
  // little remains to be waited for.
  size_t last = size_t{1} << 20;
};

// Packs the gradients of many parameters into few tensors, so that work on them
// can begin while other gradients are still being computed. A backward pass
// adds gradients one by one; a bucket is ready when all of its gradients are
// there and all buckets before it in their order are ready. Thread-compatible.
class GradientBuckets {
 public:
  // `order` is the expected order of the gradients, as indices into
  // `parameters`. Those of one dtype and device share buckets, and buckets are
  // ordered by their last gradients. `multiple` applies to each bucket's size,
  // as in FlatTensor::Like.
  GradientBuckets(std::vector<Variable> parameters,
                  const std::vector<size_t>& order, const BucketSizes& sizes,
                  int64_t multiple = 1);

  size_t size() const { return buckets_.size(); }
  const Tensor& all(size_t bucket) const { return buckets_[bucket].flat.all; }
  const Tensor& view(size_t parameter) const;
  // Returns the parameters of a bucket, by part.
  const std::vector<size_t>& parameters(size_t bucket) const {
    return buckets_[bucket].parameters;
  }
  bool has(size_t parameter) const { return places_[parameter].has; }
  // Returns the buckets in the order in which they become ready: at first 0, 1,
  // 2...
  const std::vector<size_t>& order() const { return order_; }
  // Orders the buckets by their last gradients in this order of all parameters;
  // their contents stay as they are. Call it between passes.
  void Reorder(const std::vector<size_t>& parameters);

  void Begin();
  // Copies the gradient, or its sum with the parameter's existing gradient; on
  // a GPU it copies all gradients of a bucket once the bucket is ready. Returns
  // the number of buckets that are now ready, which are the first ones in
  // order().
  size_t Put(size_t parameter, const Gradient& gradient);
  // Fills in missing gradients with the parameters' existing ones, or zeros.
  void PutTheRest();
  void FillWithZeros();

 private:
  struct Bucket {
    FlatTensor flat;
    std::vector<size_t> parameters;  // by part
    size_t missing = 0;
    // The gradients are copied to the views when the bucket is ready.
    std::vector<Tensor> views = {}, gradients = {};
  };
  struct Place {
    size_t bucket = 0, part = 0;
    bool has = false;  // in this pass
  };

  const std::vector<Variable> parameters_;
  // A bucket under construction: tensors of one dtype and device.
  struct Filling {
    std::vector<Tensor> tensors = {};
    std::vector<size_t> parameters = {};
    size_t bytes = 0;
  };
  void Close(Filling filling, int64_t multiple);
  static void Fill(Bucket& bucket);

  std::vector<Bucket> buckets_;
  std::vector<Place> places_;  // by parameter
  std::vector<size_t> order_;  // of the buckets
  size_t ready_ = 0;           // number of ready buckets
};

}  // namespace baton::dist
