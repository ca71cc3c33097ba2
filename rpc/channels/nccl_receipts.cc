// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/nccl_receipts.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/wire.pb.h"

namespace baton::rpc {
namespace {

// More than an honest sender has out: what has come here may still be under way
// as far as the sender sees, or the other way about.
constexpr size_t kMostReceipts = 1024;
constexpr uint64_t kNcclMostAwaited = uint64_t{16} << 30;  // unless it is one

}  // namespace

absl::StatusOr<Imported> NcclReceipts::Import(const TensorSpec& spec,
                                              const wire::NcclTicket& ticket) {
  if (spec.dtype == DType::kBool || ticket.bytes() == 0 ||
      ticket.bytes() != spec.bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of ", spec.bytes, " bytes in ", ticket.bytes()));
  }
  RETURN_IF_ERROR(Reserve(spec, ticket.lease()));
  // Without the lock, which those who end the connection take: this may wait
  // for the GPU.
  const absl::StatusOr<Tensor> tensor = nccl_->Make(spec);
  MutexLock lock(mutex_);
  if (lost_) return absl::CancelledError("the connection has ended");
  const auto reserved = receipts_.find(ticket.lease());
  if (!tensor.ok()) {
    awaited_bytes_ -= spec.bytes;
    receipts_.erase(reserved);
    return tensor.status();
  }
  reserved->second.tensor = *tensor;
  counts_.Add(spec.bytes);
  return Imported(*tensor, reserved->second.given.future());
}

absl::Status NcclReceipts::Reserve(const TensorSpec& spec, uint64_t lease) {
  MutexLock lock(mutex_);
  if (lost_) return absl::CancelledError("the connection has ended");
  if (receipts_.count(lease) > 0 || receipts_.size() >= kMostReceipts) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tensor ", lease, " for the second time, or ",
                     "beside ", receipts_.size(), " that have not come"));
  }
  if (!receipts_.empty() && awaited_bytes_ + spec.bytes > kNcclMostAwaited) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of ", spec.bytes, " bytes beside ",
                     awaited_bytes_, " that have not come"));
  }
  receipts_[lease].bytes = spec.bytes;
  awaited_bytes_ += spec.bytes;
  return absl::OkStatus();
}

absl::StatusOr<Tensor> NcclReceipts::Begin(uint64_t lease) {
  MutexLock lock(mutex_);
  if (lost_) return absl::CancelledError("the connection has ended");
  const auto found = receipts_.find(lease);
  if (found == receipts_.end() || !found->second.tensor.defined() ||
      found->second.under_way) {
    return absl::InvalidArgumentError(
        absl::StrCat("it sends the tensor ", lease, " unasked"));
  }
  found->second.under_way = true;
  return found->second.tensor;
}

void NcclReceipts::Give(uint64_t lease) {
  std::optional<Promise<void>> given;
  {
    MutexLock lock(mutex_);
    const auto found = receipts_.find(lease);
    if (found != receipts_.end()) given = found->second.given;
  }
  if (given.has_value()) given->Set(absl::OkStatus());
}

void NcclReceipts::End(uint64_t lease) {
  std::optional<Receipt> receipt;  // after the lock is
  MutexLock lock(mutex_);
  const auto found = receipts_.find(lease);
  if (found == receipts_.end()) return;
  receipt = std::move(found->second);
  receipts_.erase(found);
  awaited_bytes_ -= receipt->bytes;
}

void NcclReceipts::Lose() {
  MutexLock lock(mutex_);
  lost_ = true;
}

std::vector<Tensor> NcclReceipts::under_way() const {
  std::vector<Tensor> tensors;
  MutexLock lock(mutex_);
  for (const auto& [lease, receipt] : receipts_) {
    if (receipt.under_way) tensors.push_back(receipt.tensor);
  }
  return tensors;
}

void NcclReceipts::GiveUp() {
  std::map<uint64_t, Receipt> receipts;  // after the lock is
  MutexLock lock(mutex_);
  lost_ = true;
  receipts.swap(receipts_);
  awaited_bytes_ = 0;
}

ReceivedTensors NcclReceipts::counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

}  // namespace baton::rpc
