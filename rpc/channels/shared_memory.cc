// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/shared_memory.h"

#include <unistd.h>

#include <utility>

#include "core/executor.h"
#include "core/status.h"
#include "rpc/channels/fd_socket.h"
#include "rpc/channels/machine.h"
#include "rpc/channels/shared_heartbeat.h"
#include "rpc/channels/shared_memory_end.h"
#include "rpc/wire.pb.h"

namespace baton::rpc {
namespace {

class SharedMemory final : public ChannelKind {
 public:
  explicit SharedMemory(const SharedMemoryOptions& options)
      : budget_{options.made ? options.made : SharedBudget::OfMade(),
                options.mapped ? options.mapped : SharedBudget::OfMapped(),
                options.bytes, options.idle, options.pin},
        boot_id_(BootId()),
        listener_(FdListener::Make(options.socket_path)),
        heartbeat_(SharedHeartbeat::Make()),
        wakeup_(options.wakeup),
        executor_(std::make_shared<ThreadPool>(1, "baton-shm")) {}

  uint32_t id() const override { return 1; }
  std::string name() const override { return "shared memory"; }

  absl::StatusOr<std::string> Offer() override {
    wire::SharedMemoryOffer offer;
    ASSIGN_OR_RETURN(*offer.mutable_key(), NewKey());
    RETURN_IF_ERROR(boot_id_.status());
    RETURN_IF_ERROR(listener_.status());
    offer.set_boot_id(*boot_id_);
    offer.set_user(geteuid());
    offer.set_socket((*listener_)->path());
    return offer.SerializeAsString();
  }

  absl::StatusOr<std::shared_ptr<Channel>> Open(
      const Ends& ends, std::shared_ptr<ChannelPort> port) override {
    wire::SharedMemoryOffer ours, theirs;
    if (!ours.ParseFromString(ends.ours) ||
        !theirs.ParseFromString(ends.theirs)) {
      return absl::InvalidArgumentError("its offer does not parse");
    }
    if (!boot_id_.ok() || theirs.boot_id() != *boot_id_) {
      return absl::UnavailableError("it is on another machine");
    }
    if (theirs.user() != geteuid()) {
      return absl::PermissionDeniedError("it belongs to another user");
    }
    SharedMemoryEnd::Connect connect;
    if (ends.dialed) {
      connect = [path = theirs.socket(), key = theirs.key()] {
        return FdConnection::Dial(path, key);
      };
    } else {
      connect = [listener = *listener_, key = ours.key()] {
        return listener->Accept(key);
      };
    }
    return std::make_shared<SharedMemoryEnd>(
        std::move(connect), budget_, executor_,
        heartbeat_.ok() ? *heartbeat_ : nullptr, wakeup_, std::move(port));
  }

 private:
  const SharedMemoryEnd::Budget budget_;
  const absl::StatusOr<std::string> boot_id_;
  const absl::StatusOr<std::shared_ptr<FdListener>> listener_;
  const absl::StatusOr<std::shared_ptr<SharedHeartbeat>> heartbeat_;
  const std::shared_ptr<FutexEvent> wakeup_;
  // Shared by all ends: it makes and maps segments, which is slow.
  const std::shared_ptr<ThreadPool> executor_;
};

}  // namespace

std::shared_ptr<ChannelKind> MakeSharedMemory(
    const SharedMemoryOptions& options) {
  return std::make_shared<SharedMemory>(options);
}

}  // namespace baton::rpc
