// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/tcp_tensors.h"

#include <sys/uio.h>

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/channels/tcp_socket.h"
#include "rpc/wire.pb.h"

namespace baton::rpc {
namespace {

static_assert(std::endian::native == std::endian::little);

// The most tensors on their way to one peer.
constexpr size_t kMostLeases = 1024;
// As much as a receiver accepts by default before it has handled any of it
// (GrpcOptions::max_undelivered_bytes). The rest goes by gRPC, which waits.
constexpr uint64_t kTcpMostSent = uint64_t{256} << 20;  // or one tensor

}  // namespace

std::optional<Ticket> TcpSends::Export(const Tensor& tensor) {
  if (!tensor.device().is_cpu() || tensor.nbytes() == 0) return std::nullopt;
  Item item{.read = std::make_unique<PendingRead>(
                tensor.Contiguous(tensor.SuggestFormat()))};
  const uint64_t bytes = item.bytes();
  wire::TcpTicket ticket;
  ticket.set_bytes(bytes);
  MutexLock lock(mutex_);
  const bool full =
      counts_.leases >= kMostLeases ||
      (counts_.leases > 0 && counts_.leased_bytes + bytes > kTcpMostSent);
  if (lost_ || full) {
    ++counts_.declined;
    return std::nullopt;
  }
  ticket.set_lease(next_lease_++);
  counts_.Lease(bytes);
  out_.emplace(ticket.lease(), std::move(item));
  return Ticket{ticket.SerializeAsString(), ticket.lease()};
}

void TcpSends::Withdraw(uint64_t lease) {
  Item item;  // destroyed after the lock
  MutexLock lock(mutex_);
  const auto found = out_.find(lease);
  if (found == out_.end()) return;
  item = std::move(found->second);
  out_.erase(found);
  counts_.GiveBack(item.bytes());
}

Future<void> TcpSends::Send(uint64_t lease) {
  MutexLock lock(mutex_);
  const auto found = out_.find(lease);
  if (found == out_.end())
    return ReadyFuture<void>(absl::CancelledError("the connection has ended"));
  Future<void> left = found->second.left.future();
  queue_.emplace_back(lease, std::move(found->second));
  out_.erase(found);
  return left;
}

absl::StatusOr<bool> TcpSends::Next() {
  MutexLock lock(mutex_);
  if (lost_) return absl::CancelledError("the connection has ended");
  if (item_.has_value()) return true;
  if (queue_.empty()) return false;
  item_ = std::move(queue_.front().second);
  head_ = {queue_.front().first, item_->bytes()};
  written_ = 0;
  queue_.pop_front();
  return true;
}

absl::StatusOr<size_t> TcpSends::WriteSome(TcpStream& stream, size_t& offered) {
  const size_t of_head = std::min(written_, sizeof(head_));
  const size_t of_tensor = written_ - of_head;
  const auto pin = item_->read->Pin();
  const iovec parts[2] = {
      {reinterpret_cast<char*>(&head_) + of_head, sizeof(head_) - of_head},
      {static_cast<char*>(pin->raw_data()) + of_tensor,
       std::min<size_t>(head_.bytes - of_tensor, kTcpMostAtOnce)}};
  offered = parts[0].iov_len + parts[1].iov_len;
  return stream.Write(parts);
}

absl::StatusOr<TcpSends::Wrote> TcpSends::Write(TcpStream& stream) {
  MutexLock one(writing_);
  ASSIGN_OR_RETURN(const bool any, Next());
  if (!any) return Wrote{.all = true};
  size_t offered = 0;
  ASSIGN_OR_RETURN(const size_t sent, WriteSome(stream, offered));
  return Wrote{.full = sent < offered, .left = Advance(sent)};
}

std::optional<Promise<void>> TcpSends::Advance(size_t bytes) {
  written_ += bytes;
  if (written_ < sizeof(head_) + head_.bytes) return std::nullopt;
  const Item item = *std::exchange(item_, std::nullopt);
  MutexLock lock(mutex_);
  counts_.GiveBack(head_.bytes);
  return item.left;
}

void TcpSends::Lose() {
  std::optional<Item> item;
  std::map<uint64_t, Item> out;
  std::deque<std::pair<uint64_t, Item>> queue;
  {
    MutexLock one(writing_);
    MutexLock lock(mutex_);
    lost_ = true;
    item.swap(item_);
    out.swap(out_);
    queue.swap(queue_);
    counts_.Forget();
  }
  const absl::Status ended = absl::CancelledError("the connection has ended");
  if (item.has_value()) item->left.Set(ended);
  for (const auto& [lease, waiting] : queue) waiting.left.Set(ended);
}

SentTensors TcpSends::counts() const {
  MutexLock lock(mutex_);
  SentTensors counts = counts_;
  counts.capacity_bytes = kTcpMostSent;
  return counts;
}

namespace {

// More than an honest sender has out, including what the two kernels hold,
// which the sender counts as having left.
constexpr size_t kMostReceipts = size_t{1} << 16;
constexpr uint64_t kTcpMostAwaited = uint64_t{1} << 30;  // or one tensor

}  // namespace

absl::StatusOr<Imported> TcpReceipts::Import(const TensorSpec& spec,
                                             uint64_t lease, uint64_t bytes) {
  if (bytes == 0 || bytes != spec.bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of ", spec.bytes, " bytes in ", bytes));
  }
  Receipt receipt{.bytes = bytes};
  RETURN_IF_ERROR(CatchErrors([&] {
    receipt.tensor = Tensor::Empty(
        spec.shape,
        {.dtype = spec.dtype, .format = spec.format, .pinned = spec.pinned});
  }));
  Imported imported(receipt.tensor, receipt.came.future());
  MutexLock lock(mutex_);
  if (lost_) return absl::CancelledError("the connection has ended");
  if (receipts_.size() >= kMostReceipts ||
      (!receipts_.empty() && awaited_bytes_ + bytes > kTcpMostAwaited)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of ", bytes, " bytes beside ", receipts_.size(),
                     " of ", awaited_bytes_, " that have not come"));
  }
  if (!receipts_.emplace(lease, std::move(receipt)).second) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tensor ", lease, " for the second time"));
  }
  awaited_bytes_ += bytes;
  return imported;
}

absl::StatusOr<bool> TcpReceipts::Find() {
  MutexLock lock(mutex_);
  if (lost_) return absl::CancelledError("the connection has ended");
  if (receipt_.has_value() || !head_is_whole()) return true;
  const auto found = receipts_.find(head_.lease);
  if (found == receipts_.end()) return false;
  if (found->second.bytes != head_.bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        head_.bytes, " bytes come for a tensor of ", found->second.bytes));
  }
  receipt_ = std::move(found->second);
  receipts_.erase(found);
  awaited_bytes_ -= head_.bytes;
  read_ = 0;
  return true;
}

absl::StatusOr<TcpReceipts::Read> TcpReceipts::ReadFrom(TcpStream& stream) {
  MutexLock one(reading_);
  ASSIGN_OR_RETURN(const bool promised, Find());
  if (!promised) return Read{.unasked = true};
  // The elements are followed by the next head; reading both saves a call.
  TcpHead next{};
  iovec parts[2] = {{}, {&next, sizeof(next)}};
  if (receipt_.has_value()) {
    parts[0] = {static_cast<char*>(receipt_->tensor.raw_data()) + read_,
                std::min<size_t>(receipt_->bytes - read_, kTcpMostAtOnce)};
  } else {
    parts[0] = {reinterpret_cast<char*>(&head_) + head_bytes_,
                sizeof(head_) - head_bytes_};
  }
  const bool to_the_end =
      receipt_.has_value() && parts[0].iov_len == receipt_->bytes - read_;
  const std::span<const iovec> wanted(parts, to_the_end ? 2 : 1);
  ASSIGN_OR_RETURN(const size_t bytes, stream.Read(wanted));
  if (bytes == 0) return Read{.empty = true};
  const size_t here = std::min(bytes, parts[0].iov_len);
  if (receipt_.has_value()) {
    RETURN_IF_ERROR(CheckElements(
        receipt_->tensor.dtype(),
        {static_cast<const std::byte*>(parts[0].iov_base), here}));
  }
  Read read{.came = Advance(here)};
  if (bytes > here) {
    head_ = next;
    head_bytes_ = bytes - here;
  }
  return read;
}

std::optional<Promise<void>> TcpReceipts::Advance(size_t bytes) {
  if (!receipt_.has_value()) {
    head_bytes_ += bytes;
    return std::nullopt;
  }
  read_ += bytes;
  if (read_ < receipt_->bytes) return std::nullopt;
  head_bytes_ = 0;
  {
    MutexLock lock(mutex_);
    counts_.Add(receipt_->bytes);
  }
  return std::exchange(receipt_, std::nullopt)->came;
}

void TcpReceipts::Lose() {
  std::optional<Receipt> receipt;
  std::map<uint64_t, Receipt> receipts;
  {
    MutexLock one(reading_);
    MutexLock lock(mutex_);
    lost_ = true;
    receipt.swap(receipt_);
    receipts.swap(receipts_);
    awaited_bytes_ = 0;
  }
  const absl::Status ended = absl::CancelledError("the connection has ended");
  if (receipt.has_value()) receipt->came.Set(ended);
  for (const auto& [lease, missing] : receipts) missing.came.Set(ended);
}

ReceivedTensors TcpReceipts::counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

}  // namespace baton::rpc
