// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/nccl_sends.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/wire.pb.h"

namespace baton::rpc {
namespace {

// So many may be on their way to one peer.
constexpr size_t kMostLeases = 256;
constexpr uint64_t kNcclMostSent = uint64_t{4} << 30;  // unless it is one

}  // namespace

bool NcclSends::Takes(const Tensor& tensor) const {
  // A byte of a bool may be 0 or 1 alone, which nobody checks on a GPU.
  return tensor.device().is_cuda() && tensor.device().index() == gpu_->own() &&
         tensor.nbytes() > 0 && tensor.dtype() != DType::kBool;
}

std::nullopt_t NcclSends::DeclineLocked() {
  ++counts_.declined;
  return std::nullopt;
}

std::optional<Ticket> NcclSends::Export(const Tensor& tensor) {
  if (!Takes(tensor)) return std::nullopt;
  if (traffic_->IsHeld()) {
    MutexLock lock(mutex_);
    return DeclineLocked();
  }
  Lease lease{.tensor = tensor.Contiguous(tensor.SuggestFormat()),
              .read = std::make_shared<OutsideRead>()};
  // Nothing for a capture, whose work has not been done.
  absl::StatusOr<Poller::Question> written =
      absl::UnavailableError("no memory of the allocator's");
  if (gpu_->Find(lease.tensor).has_value())
    written = nccl_->WhenWritten(lease.tensor);
  wire::NcclTicket ticket;
  ticket.set_bytes(lease.tensor.nbytes());
  MutexLock lock(mutex_);
  const bool full = leases_.size() >= kMostLeases ||
                    (!leases_.empty() &&
                     counts_.leased_bytes + ticket.bytes() > kNcclMostSent);
  if (lost_ || full || !written.ok()) return DeclineLocked();
  lease.written = *std::move(written);
  lease.tensor.storage()->use()->ReadOutside(lease.read);
  ticket.set_lease(next_lease_++);
  counts_.Lease(ticket.bytes());
  leases_[ticket.lease()] = std::move(lease);
  return Ticket{ticket.SerializeAsString(), ticket.lease()};
}

void NcclSends::Drop(uint64_t id, bool only_out) {
  Lease lease;  // after the lock is
  MutexLock lock(mutex_);
  const auto found = leases_.find(id);
  if (found == leases_.end() ||
      (only_out && found->second.state != State::kOut))
    return;
  lease = std::move(found->second);
  leases_.erase(found);
  counts_.GiveBack(lease.tensor.nbytes());
  lease.read->End();
}

void NcclSends::Withdraw(uint64_t lease) { Drop(lease, true); }
void NcclSends::End(uint64_t lease) { Drop(lease, false); }

absl::StatusOr<Poller::Question> NcclSends::OnAsk(uint64_t id) {
  MutexLock lock(mutex_);
  const auto found = leases_.find(id);
  if (found == leases_.end() || found->second.state != State::kOut) {
    return absl::InvalidArgumentError(
        absl::StrCat("it asks for the tensor ", id, ", which is not out"));
  }
  found->second.state = State::kAsked;
  return std::move(found->second.written);
}

std::optional<Tensor> NcclSends::Begin(uint64_t id, NcclTraffic::Token token) {
  MutexLock lock(mutex_);
  const auto found = leases_.find(id);
  if (found == leases_.end()) return std::nullopt;
  found->second.state = State::kUnderWay;
  found->second.token = std::move(token);
  return found->second.tensor;
}

std::shared_ptr<void> NcclSends::Lose() {
  const auto dropped = std::make_shared<std::vector<Lease>>();
  MutexLock lock(mutex_);
  lost_ = true;
  for (auto it = leases_.begin(); it != leases_.end();) {
    if (it->second.state == State::kUnderWay) {
      ++it;
      continue;
    }
    it->second.read->End();
    counts_.GiveBack(it->second.tensor.nbytes());
    dropped->push_back(std::move(it->second));
    it = leases_.erase(it);
  }
  return dropped;
}

void NcclSends::Forsake() {
  MutexLock lock(mutex_);
  for (auto& [id, lease] : leases_) lease.token = nullptr;
}

std::vector<Tensor> NcclSends::under_way() const {
  std::vector<Tensor> tensors;
  MutexLock lock(mutex_);
  for (const auto& [id, lease] : leases_) {
    if (lease.state == State::kUnderWay) tensors.push_back(lease.tensor);
  }
  return tensors;
}

void NcclSends::GiveUp() {
  std::map<uint64_t, Lease> dropped;  // after the lock is
  MutexLock lock(mutex_);
  lost_ = true;
  for (const auto& [id, lease] : leases_) lease.read->End();
  dropped.swap(leases_);
  counts_.Forget();
}

SentTensors NcclSends::counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

}  // namespace baton::rpc
