// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/nccl.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/channels/nccl_end.h"
#include "rpc/wire.pb.h"

namespace baton::rpc {
namespace {

constexpr int kMostBreaks = 3;
constexpr std::chrono::seconds kPatience{2};
constexpr uint32_t kCudaIpc = 2;

class NcclKind final : public ChannelKind {
 public:
  NcclKind(std::shared_ptr<IpcGpu> gpu, std::shared_ptr<NcclGpu> nccl,
           const NcclOptions& options)
      : parts_{.gpu = std::move(gpu),
               .nccl = std::move(nccl),
               .poller = std::make_shared<Poller>("baton-nccl-poll"),
               .rescuer = std::make_shared<Poller>("baton-nccl-loss"),
               .executor = std::make_shared<ThreadPool>(1, "baton-nccl"),
               .breaks = std::make_shared<std::atomic<int>>(0),
               .options = options} {}
  ~NcclKind() override {
    parts_.executor = nullptr;
    parts_.poller = nullptr;
    parts_.rescuer = nullptr;
    if (!AwaitAborts(kPatience))
      LogWarning("NCCL is left behind: it does not end what was under way");
  }

  uint32_t id() const override { return 3; }
  std::string name() const override { return "NCCL"; }
  std::optional<uint32_t> better() const override { return kCudaIpc; }

  absl::StatusOr<std::string> Offer() override {
    if (!parts_.options.trusted_fabric) {
      return absl::FailedPreconditionError(
          "it talks in clear, and the network was not said to be trusted "
          "(--trusted_fabric)");
    }
    if (*parts_.breaks >= kMostBreaks) {
      return absl::UnavailableError(
          absl::StrCat("it has failed ", parts_.breaks->load(), " times"));
    }
    RETURN_IF_ERROR(CheckOwn(*parts_.gpu));
    ASSIGN_OR_RETURN(const std::string version, parts_.nccl->Version());
    ASSIGN_OR_RETURN(const std::string uuid, parts_.gpu->Uuid());
    wire::NcclOffer offer;
    offer.set_gpu(uuid);
    offer.set_version(version);
    return offer.SerializeAsString();
  }

  absl::StatusOr<std::shared_ptr<Channel>> Open(
      const Ends& ends, std::shared_ptr<ChannelPort> port) override {
    wire::NcclOffer ours, theirs;
    if (!ours.ParseFromString(ends.ours) ||
        !theirs.ParseFromString(ends.theirs)) {
      return absl::InvalidArgumentError("its offer does not parse");
    }
    if (theirs.gpu() == ours.gpu()) {
      return absl::UnavailableError("it has the same GPU");
    }
    if (theirs.version() != ours.version()) {
      return absl::UnavailableError(absl::StrCat(
          "it has version ", theirs.version(), ", not ", ours.version()));
    }
    return std::make_shared<NcclEnd>(parts_, ours.gpu() < theirs.gpu(),
                                     std::move(port));
  }

 private:
  NcclParts parts_;
};

}  // namespace

std::shared_ptr<ChannelKind> MakeNccl(std::shared_ptr<IpcGpu> gpu,
                                      std::shared_ptr<NcclGpu> nccl,
                                      const NcclOptions& options) {
  return std::make_shared<NcclKind>(std::move(gpu), std::move(nccl), options);
}

}  // namespace baton::rpc
