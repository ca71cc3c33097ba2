// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/data_parallel/sync_batch_norm.h"

#include <utility>

#include "autograd/functions/norm.h"
#include "core/future.h"
#include "core/shape.h"
#include "core/status.h"
#include "models/nn/batch_norm.h"

namespace baton::dist {
namespace {

class GroupPeers final : public autograd::BatchPeers {
 public:
  explicit GroupPeers(std::shared_ptr<rpc::ProcessGroup> group)
      : group_(std::move(group)) {}

  int members() const override { return group_->size(); }
  Tensor Gather(const Tensor& own) override {
    Dims dims = own.shape().dims();
    dims.insert(dims.begin(), group_->size());
    const Tensor all = Tensor::Empty(
        Shape(dims), {.dtype = own.dtype(), .device = own.device()});
    Take(all, group_->AllGather(all, own));
    return all;
  }
  void AddUp(const Tensor& own) override { Take(own, group_->AllReduce(own)); }

 private:
  // On a GPU later work waits for the result there; otherwise this waits, at
  // most for the group's own deadline.
  void Take(const Tensor& result, const Future<void>& call) const {
    absl::Status status;
    if (result.device().is_cpu() || call.ready()) {
      status = call.Await(kNoLimit);
    } else {
      status = group_->status();
    }
    if (!status.ok()) throw Error(Annotate(status, "batch norm"));
  }

  const std::shared_ptr<rpc::ProcessGroup> group_;
};

void Synchronise(nn::Module& module,
                 const std::shared_ptr<autograd::BatchPeers>& peers) {
  if (auto* const norm = dynamic_cast<nn::BatchNorm2d*>(&module))
    norm->TrainTogether(peers);
  for (const auto& child : module.children()) Synchronise(*child.value, peers);
}

}  // namespace

void SynchroniseBatchNorms(nn::Module& module,
                           std::shared_ptr<rpc::ProcessGroup> group) {
  Synchronise(module, std::make_shared<GroupPeers>(std::move(group)));
}

}  // namespace baton::dist
