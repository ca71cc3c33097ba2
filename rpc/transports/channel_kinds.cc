// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/channel_kinds.h"

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "core/cuda/memory.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/channels/cuda_ipc.h"
#include "rpc/channels/ipc_gpu.h"
#include "rpc/channels/shared_memory.h"
#include "rpc/channels/tcp.h"
#include "rpc/transports/address.h"
#include "rpc/wire.pb.h"

namespace baton::rpc {
namespace {

// Returns nothing if it is turned off.
std::optional<IpcReach> ReachFromEnvironment() {
  static const std::optional<IpcReach> reach = []() -> std::optional<IpcReach> {
    const char* set = std::getenv("BATON_CUDA_IPC");
    const std::string value = set == nullptr ? "all" : set;
    if (value == "off") return std::nullopt;
    if (value == "one") return IpcReach::kOneGpu;
    if (value != "all") {
      LogWarning("BATON_CUDA_IPC=", value,
                 " means nothing; \"all\", \"one\" and \"off\" do");
    }
    return IpcReach::kAllGpus;
  }();
  return reach;
}

// Whether a variable is unset or equals `meant`.
bool Says(const char* variable, const std::string& meant) {
  const char* set = std::getenv(variable);
  const std::string value = set == nullptr ? "" : set;
  if (!value.empty() && value != meant) {
    LogWarning(variable, "=", value, " means nothing; \"", meant, "\" would");
  }
  return value == meant;
}

bool IsTrusted(const Security& security) {
  static const bool trusted = Says("BATON_TRUSTED_FABRIC", "on");
  return security.trusted_fabric || trusted;
}

TcpOptions TcpOptionsOf(const GrpcOptions& options) {
  TcpOptions tcp{
      .port = options.tensor_port,
      .tls = options.security.tls() && !IsTrusted(options.security),
      .check = [security = options.security](const std::string& address) {
        return CheckExposure(security, "tensors would be sent to", address,
                             Names::kRefuse);
      }};
  if (const auto listen = ParseHostPort(options.listen); listen.ok()) {
    tcp.listen_host = listen->host;
    tcp.told_host = Advertised(*listen, options.advertise_host).host;
  }
  return tcp;
}

Pin PinFor(Device device) {
  if (!device.is_cuda()) return {};
  return [](void* data, size_t bytes) {
    std::shared_ptr<void> pinned;
    const absl::Status status =
        CatchErrors([&] { pinned = cuda::Pin(data, bytes); });
    if (!status.ok())
      LogInfo("tensors by shared memory reach the GPU slowly: ",
              status.ToString());
    return pinned;
  };
}

}  // namespace

std::shared_ptr<FutexEvent> MakeFutexEvent(const GrpcOptions& options) {
  if (!options.shared_memory || !options.message_ring ||
      Says("BATON_MESSAGE_RING", "off")) {
    return nullptr;
  }
  auto wakeup = FutexEvent::Make();
  return wakeup.ok() ? *std::move(wakeup) : nullptr;
}

absl::StatusOr<ChannelKinds> MakeChannelKinds(
    const GrpcOptions& options, const std::string& fd_path,
    std::shared_ptr<FutexEvent> wakeup) {
  RETURN_IF_ERROR(CheckDevice(options.device));
  ChannelKinds kinds;
  if (options.shared_memory) {
    kinds.push_back(MakeSharedMemory({.socket_path = fd_path,
                                      .bytes = options.shared_memory_bytes,
                                      .pin = PinFor(options.device),
                                      .wakeup = std::move(wakeup)}));
  }
  if (options.device.is_cuda()) {
    if (const std::optional<IpcReach> reach = ReachFromEnvironment())
      kinds.push_back(MakeCudaIpc(MakeCudaGpu(options.device), *reach));
  }
  if (options.tcp_tensors && !Says("BATON_TCP_TENSORS", "off"))
    kinds.push_back(MakeTcp(TcpOptionsOf(options)));
  return kinds;
}

ChannelOffers OffersOf(const ChannelKinds& kinds) {
  ChannelOffers offers;
  for (const auto& kind : kinds) {
    wire::ChannelOffer& added = *offers.Add();
    added.set_channel(kind->id());
    if (const auto offer = kind->Offer(); offer.ok()) {
      added.set_offer(*offer);
    } else {
      added.set_missing(std::string(offer.status().message()));
    }
  }
  return offers;
}

}  // namespace baton::rpc
