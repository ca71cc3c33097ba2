// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/cuda_ipc.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/executor.h"
#include "core/status.h"
#include "rpc/channels/cuda_ipc_end.h"
#include "rpc/channels/machine.h"
#include "rpc/channels/poller.h"
#include "rpc/wire.pb.h"

namespace baton::rpc {
namespace {

// One key for this process, whichever of its workers offers.
const absl::StatusOr<std::string>& ProcessKey() {
  static const auto* const key = new absl::StatusOr<std::string>(NewKey());
  return *key;
}

class CudaIpc final : public ChannelKind {
 public:
  CudaIpc(std::shared_ptr<IpcGpu> gpu, IpcReach reach)
      : gpu_(std::move(gpu)),
        reach_(reach),
        boot_id_(BootId()),
        poller_(std::make_shared<Poller>("baton-ipc-poll")),
        executor_(std::make_shared<ThreadPool>(1, "baton-ipc")) {}

  uint32_t id() const override { return 2; }
  std::string name() const override { return "CUDA IPC"; }

  absl::StatusOr<std::string> Offer() override {
    RETURN_IF_ERROR(CheckOwn(*gpu_));
    RETURN_IF_ERROR(boot_id_.status());
    RETURN_IF_ERROR(ProcessKey().status());
    ASSIGN_OR_RETURN(const std::string uuid, gpu_->Uuid());
    wire::CudaIpcOffer offer;
    offer.set_boot_id(*boot_id_);
    offer.set_user(geteuid());
    offer.set_process(*ProcessKey());
    offer.set_gpu(uuid);
    offer.set_all_gpus(reach_ == IpcReach::kAllGpus);
    return offer.SerializeAsString();
  }

  absl::StatusOr<std::shared_ptr<Channel>> Open(
      const Ends& ends, std::shared_ptr<ChannelPort> port) override {
    wire::CudaIpcOffer ours, theirs;
    if (!ours.ParseFromString(ends.ours) ||
        !theirs.ParseFromString(ends.theirs)) {
      return absl::InvalidArgumentError("its offer does not parse");
    }
    if (theirs.boot_id() != ours.boot_id()) {
      return absl::UnavailableError("it is on another machine");
    }
    if (theirs.user() != ours.user()) {
      return absl::PermissionDeniedError("it belongs to another user");
    }
    if (theirs.process() == ours.process()) {
      return absl::UnavailableError("it is in this process");
    }
    const bool all = ours.all_gpus() && theirs.all_gpus();
    if (theirs.gpu() != ours.gpu() && !all) {
      return absl::UnavailableError(
          absl::StrCat("it has another GPU, and BATON_CUDA_IPC=one is set ",
                       ours.all_gpus() ? "there" : "here"));
    }
    return std::make_shared<CudaIpcEnd>(
        gpu_, all ? IpcReach::kAllGpus : IpcReach::kOneGpu, poller_, executor_,
        std::move(port));
  }

 private:
  const std::shared_ptr<IpcGpu> gpu_;
  const IpcReach reach_;
  const absl::StatusOr<std::string> boot_id_;
  // Shared by all ends. Copies are polled often; opening segments is slow.
  const std::shared_ptr<Poller> poller_;
  const std::shared_ptr<ThreadPool> executor_;
};

}  // namespace

std::shared_ptr<ChannelKind> MakeCudaIpc(std::shared_ptr<IpcGpu> gpu,
                                         IpcReach reach) {
  return std::make_shared<CudaIpc>(std::move(gpu), reach);
}

}  // namespace baton::rpc
