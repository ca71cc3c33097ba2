// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/shared_memory.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/cpu/streaming_copy.h"
#include "core/executor.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/fd_socket.h"
#include "rpc/channels/segment.h"
#include "rpc/security.h"
#include "rpc/wire.pb.h"

namespace baton::rpc {
namespace {

constexpr size_t kLeastGrowth = size_t{16} << 20;
constexpr size_t kGranule = size_t{2} << 20;
constexpr std::chrono::seconds kGrowthPause{1};

void CopyInto(const Segment& segment, uint64_t offset, const Tensor& tensor) {
  std::byte* data = segment.data() + offset;
  const TensorSpec spec = SpecOf(tensor);
  if (tensor.IsContiguous(spec.format)) {
    cpu::StreamingCopy(data, tensor.raw_data(), spec.bytes);
    return;
  }
  DenseView(Storage::Wrap(data, spec.bytes, Device::Cpu(), nullptr), spec)
      .CopyFrom(tensor);
}

Ticket TicketOf(const ExportedBlocks::Leased& leased) {
  wire::SharedMemoryTicket ticket;
  ticket.set_segment(leased.block.segment);
  ticket.set_offset(leased.block.offset);
  ticket.set_bytes(leased.block.bytes);
  ticket.set_lease(leased.lease);
  return {ticket.SerializeAsString(), leased.lease};
}

}  // namespace

SharedMemoryEnd::SharedMemoryEnd(Connect connect, const Budget& budget,
                                 std::shared_ptr<ThreadPool> executor,
                                 std::shared_ptr<SharedHeartbeat> heartbeat,
                                 std::shared_ptr<FutexEvent> wakeup,
                                 std::shared_ptr<ChannelPort> port)
    : connect_(std::move(connect)),
      budget_(budget),
      executor_(executor),
      heartbeat_(std::move(heartbeat)),
      wakeup_(std::move(wakeup)),
      port_(std::move(port)),
      imported_(std::make_shared<ImportedBlocks>(port_)) {}

void SharedMemoryEnd::Post(Task task) {
  if (const auto executor = executor_.lock()) {
    executor->Post(std::move(task));
  }
}

void SharedMemoryEnd::SendControl(const wire::SharedMemoryControl& control) {
  port_->SendControl(control.SerializeAsString());
}

Channel::Signs SharedMemoryEnd::Beat() {
  if (heartbeat_ != nullptr) heartbeat_->Beat();
  if (exported_->HasIdle(Clock::now() - budget_.idle)) {
    Post([self = shared_from_this()] { self->ReturnIdle(self->budget_.idle); });
  }
  MutexLock lock(mutex_);
  return {.alive = watch_ != nullptr && watch_->HasBeaten(), .seen = watched_};
}

void SharedMemoryEnd::NotGrown(uint32_t id, const std::string& why) {
  std::shared_ptr<Segment> unused;
  {
    MutexLock lock(mutex_);
    growing_ = false;
    grow_again_ = Clock::now() + kGrowthPause;
    if (const auto found = passed_.find(id); found != passed_.end()) {
      unused = std::move(found->second);
      passed_.erase(found);
    }
    if (lost_) return;
    why_not_ = why;
    if (exported_->capacity() > 0) {
      LogInfo("no more shared memory for a peer for now: ", why);
      return;
    }
  }
  port_->Failed(why);
}

void SharedMemoryEnd::Grow(uint64_t bytes) {
  const bool open = exported_->capacity() > 0;
  MutexLock lock(mutex_);
  if (!open || growing_ || lost_ || Clock::now() < grow_again_) return;
  // There may be room since the caller looked.
  if (exported_->HasRoom(bytes)) return;
  growing_ = true;
  Post([self = shared_from_this(), bytes] { self->GrowNow(bytes); });
}

void SharedMemoryEnd::GrowNow(uint64_t bytes) {
  // For two tensors, because one is in use while the next one is written.
  const uint64_t most = std::max<uint64_t>(2 * bytes, kLeastGrowth);
  Part part = budget_.made->Take(
      bytes, (most + kGranule - 1) / kGranule * kGranule, budget_.bytes);
  if (part == nullptr) {
    NotGrown(0, absl::StrCat(bytes, " bytes beside ", budget_.made->taken(),
                             " that are in use by all peers, of ",
                             budget_.bytes, " or an eighth of the memory"));
    return;
  }
  const size_t size = part->bytes();
  PassOrTell(size, std::move(part));
}

void SharedMemoryEnd::ReturnIdle(Clock::duration idle) {
  for (auto& [id, segment] : exported_->TakeIdle(Clock::now() - idle)) {
    returning_[id] = std::move(segment);
    wire::SharedMemoryControl control;
    control.set_close(id);
    SendControl(control);
  }
}

std::optional<Ticket> SharedMemoryEnd::Export(const Tensor& tensor) {
  if (!tensor.device().is_cpu()) return std::nullopt;
  const auto leased = exported_->Lease(tensor.nbytes());
  if (!leased.has_value()) {
    Grow(tensor.nbytes());
    return std::nullopt;
  }
  CopyInto(*leased->segment, leased->block.offset, tensor);
  return TicketOf(*leased);
}

Tensor SharedMemoryEnd::Make(const TensorSpec& spec) {
  Tensor tensor = exported_->Make(spec);
  if (!tensor.defined()) Grow(spec.bytes);
  return tensor;
}

std::optional<Ticket> SharedMemoryEnd::ExportInPlace(Tensor& tensor) {
  const auto leased = exported_->LeaseMade(tensor);
  if (!leased.has_value()) return std::nullopt;
  return TicketOf(*leased);
}

void SharedMemoryEnd::Withdraw(uint64_t lease) {
  (void)exported_->GiveBack(lease);
}

absl::Status SharedMemoryEnd::OnReleased(uint64_t lease) {
  if (exported_->GiveBack(lease)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("gives back the lease ", lease, ", which is not out"));
}

absl::StatusOr<Imported> SharedMemoryEnd::Import(const TensorSpec& spec,
                                                 const std::string& ticket) {
  wire::SharedMemoryTicket parsed;
  if (!parsed.ParseFromString(ticket)) {
    return absl::InvalidArgumentError("a ticket that does not parse");
  }
  return imported_->Import(spec, {parsed.segment(), parsed.offset(),
                                  parsed.bytes(), parsed.lease()});
}

void SharedMemoryEnd::OnLost() {
  ExportedBlocks::Segments passed;
  {
    MutexLock lock(mutex_);
    if (std::exchange(lost_, true)) return;
    passed.swap(passed_);
    watch_ = nullptr;
    budget_.made->Leave(budget_member_);
  }
  Post([self = shared_from_this(), passed = std::move(passed),
        used = exported_->Forget()]() mutable {
    passed.clear();
    used.clear();
    self->returning_.clear();
    self->connection_.reset();
    self->ring_ = nullptr;
    self->peer_wakeup_ = nullptr;
    self->imported_->Forget();
  });
}

TensorChannelInfo SharedMemoryEnd::info() const {
  TensorChannelInfo info{exported_->counts(), imported_->counts()};
  MutexLock lock(mutex_);
  info.why_not = why_not_;
  return info;
}

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
