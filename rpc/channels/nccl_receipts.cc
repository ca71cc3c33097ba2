// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/nccl_receipts.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/wire.pb.h"

namespace baton::rpc {
namespace {

// More than an honest sender has out: what has come here may still be under way
// as far as the sender sees, or the other way about.
constexpr size_t kMostReceipts = 1024;

}  // namespace

absl::StatusOr<Tensor> NcclReceipts::Import(const TensorSpec& spec,
                                            const wire::NcclTicket& ticket) {
  if (spec.dtype == DType::kBool || ticket.bytes() == 0 ||
      ticket.bytes() != spec.bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of ", spec.bytes, " bytes in ", ticket.bytes()));
  }
  MutexLock lock(mutex_);
  if (lost_) return absl::CancelledError("the connection has ended");
  if (receipts_.count(ticket.lease()) > 0 ||
      receipts_.size() >= kMostReceipts) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tensor ", ticket.lease(), " for the second time, or ",
                     "beside ", receipts_.size(), " that have not come"));
  }
  ASSIGN_OR_RETURN(NcclGpu::Coming coming, nccl_->Expect(spec));
  const Tensor tensor = coming.tensor;
  receipts_[ticket.lease()] = {std::move(coming)};
  ++tensors_;
  bytes_ += spec.bytes;
  return tensor;
}

absl::StatusOr<Tensor> NcclReceipts::Begin(uint64_t lease) {
  MutexLock lock(mutex_);
  if (lost_) return absl::CancelledError("the connection has ended");
  const auto found = receipts_.find(lease);
  if (found == receipts_.end() || found->second.under_way) {
    return absl::InvalidArgumentError(
        absl::StrCat("it sends the tensor ", lease, " unasked"));
  }
  found->second.under_way = true;
  return found->second.coming.tensor;
}

void NcclReceipts::End(uint64_t lease) {
  Receipt receipt;  // after the lock is
  MutexLock lock(mutex_);
  const auto found = receipts_.find(lease);
  if (found == receipts_.end()) return;
  receipt = std::move(found->second);
  receipts_.erase(found);
  receipt.coming.arrival->Came();
}

void NcclReceipts::Lose() {
  MutexLock lock(mutex_);
  lost_ = true;
}

std::vector<Tensor> NcclReceipts::under_way() const {
  std::vector<Tensor> tensors;
  MutexLock lock(mutex_);
  for (const auto& [lease, receipt] : receipts_) {
    if (receipt.under_way) tensors.push_back(receipt.coming.tensor);
  }
  return tensors;
}

void NcclReceipts::GiveUp() {
  std::map<uint64_t, Receipt> receipts;
  {
    MutexLock lock(mutex_);
    lost_ = true;
    receipts.swap(receipts_);
  }
  for (auto& [lease, receipt] : receipts) receipt.coming.arrival->Lost();
}

void NcclReceipts::AddTo(TensorChannelInfo& info) const {
  MutexLock lock(mutex_);
  info.tensors_received = tensors_;
  info.bytes_received = bytes_;
}

}  // namespace baton::rpc
