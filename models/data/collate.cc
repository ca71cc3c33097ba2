// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/data/collate.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/ops/indexing.h"
#include "core/status.h"

namespace baton::data {
namespace {

// Collects tensor `field` of all samples; each must satisfy fits(first, other).
template <typename Fits>
absl::StatusOr<Tensors> FieldOf(const std::vector<Tensors>& samples,
                                size_t field, Fits fits) {
  Tensors all;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].size() != samples[0].size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("sample ", i, " of a batch has ", samples[i].size(),
                       " tensors, the first has ", samples[0].size()));
    }
    const Tensor &tensor = samples[i][field], &first = samples[0][field];
    if (tensor.dtype() != first.dtype() || !fits(first, tensor)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor ", field, " of sample ", i, ", ", Name(tensor.dtype()),
          tensor.shape().ToString(), ", does not go into a batch of ",
          Name(first.dtype()), first.shape().ToString()));
    }
    all.push_back(tensor);
  }
  return all;
}

bool SameShape(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape();
}

// Returns true if all axes but the first are equal.
bool SameElements(const Tensor& a, const Tensor& b) {
  return a.rank() == b.rank() &&
         (a.rank() == 0 || std::equal(a.shape().begin() + 1, a.shape().end(),
                                      b.shape().begin() + 1));
}

}  // namespace

Tensor PadSequences(const Tensors& sequences, double padding) {
  constexpr char kOp[] = "pad_sequences";
  Require(!sequences.empty() && sequences[0].rank() > 0, kOp,
          "expected sequences [T, ...]");
  const Tensor& first = sequences[0];
  int64_t longest = 0;
  for (const Tensor& sequence : sequences) {
    Require(SameElements(first, sequence) && sequence.dtype() == first.dtype(),
            kOp, "expected sequences of one kind of elements, got ",
            first.shape().ToString(), " and ", sequence.shape().ToString());
    longest = std::max(longest, sequence.dim(0));
  }
  Dims dims = first.shape().dims();
  dims[0] = longest;
  dims.insert(dims.begin(), static_cast<int64_t>(sequences.size()));
  const Tensor padded =
      Tensor::Full(Shape(std::move(dims)), padding,
                   {.dtype = first.dtype(), .device = first.device()});
  for (size_t i = 0; i < sequences.size(); ++i) {
    padded.Select(0, static_cast<int64_t>(i))
        .Slice(0, 0, sequences[i].dim(0))
        .CopyFrom(sequences[i]);
  }
  return padded;
}

Collate Stacked() {
  return [](const std::vector<Tensors>& samples) -> absl::StatusOr<Tensors> {
    Tensors batch;
    for (size_t field = 0; field < samples[0].size(); ++field) {
      ASSIGN_OR_RETURN(const Tensors all, FieldOf(samples, field, SameShape));
      batch.push_back(ops::Stack(all, 0));
    }
    return batch;
  };
}

Collate Padded(double padding) {
  return [padding](
             const std::vector<Tensors>& samples) -> absl::StatusOr<Tensors> {
    Tensors batch;
    for (size_t field = 0; field < samples[0].size(); ++field) {
      ASSIGN_OR_RETURN(const Tensors all,
                       FieldOf(samples, field, SameElements));
      batch.push_back(all[0].rank() == 0 ? ops::Stack(all, 0)
                                         : PadSequences(all, padding));
    }
    std::vector<int64_t> lengths;
    for (const Tensors& sample : samples) {
      const bool sequence = !sample.empty() && sample[0].rank() > 0;
      lengths.push_back(sequence ? sample[0].dim(0) : 0);
    }
    batch.push_back(Tensor::From(lengths));
    return batch;
  };
}

}  // namespace baton::data
