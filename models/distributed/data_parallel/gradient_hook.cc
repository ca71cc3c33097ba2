// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/data_parallel/gradient_hook.h"

namespace baton::dist {

GradientHook MeanHook(std::optional<DType> travel_as) {
  return [travel_as](rpc::ProcessGroup& group, const GradientBucket& bucket) {
    const Tensor sent =
        travel_as.has_value() ? bucket.all.To(*travel_as) : bucket.all;
    BucketReduction reduction{
        .call = group.AllReduce(sent, rpc::ReduceOp::kMean),
        .bytes = static_cast<int64_t>(sent.nbytes())};
    if (!SameView(sent, bucket.all)) {
      reduction.then = [sent, all = bucket.all] {
        all.CopyFrom(sent);
        return BucketReduction();
      };
    }
    return reduction;
  };
}

}  // namespace baton::dist
