// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <chrono>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/channels/ipc_tensors.h"
#include "rpc/wire.pb.h"

namespace baton::rpc {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How long a lease may wait for a message to go with, which spares the peer a
// wake-up: until the end of a short training step, but not while the peer has
// writers that wait.
constexpr milliseconds kUnhurried{10}, kHurried{1};
// How long a peer that has waited is expected to wait again.
constexpr std::chrono::seconds kWaitsAgain{1};

constexpr size_t kMaxImportedSegments = 4096;
constexpr int kMaxEvents = 1024;
constexpr size_t kMaxGpus = 64;
constexpr uint64_t kMaxProofBytes = uint64_t{1} << 20;
constexpr std::chrono::seconds kProofLimit{10};

}  // namespace

absl::StatusOr<uint64_t> IpcImports::Open(
    const wire::CudaIpcControl::Passed& passed) {
  if (passed.bytes() == 0 || passed.events_size() > kMaxEvents ||
      passed.proof_bytes() > kMaxProofBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a segment of ", passed.bytes(), " bytes with ", passed.events_size(),
        " events and a proof of ", passed.proof_bytes(), " bytes"));
  }
  Segment segment{passed.gpu(), passed.bytes(), nullptr};
  ASSIGN_OR_RETURN(segment.base, gpu_->OpenSegment(passed.handle()));
  Events events;
  for (const std::string& handle : passed.events()) {
    ASSIGN_OR_RETURN(std::shared_ptr<void> event, gpu_->OpenEvent(handle));
    events.push_back(std::move(event));
  }
  RETURN_IF_ERROR(Add(passed, std::move(segment), std::move(events)));
  if (passed.proof().empty()) return 0;
  wire::CudaIpcTicket ticket;
  if (!ticket.ParseFromString(passed.proof())) {
    return absl::InvalidArgumentError("a proof that does not parse");
  }
  const auto bytes = static_cast<int64_t>(passed.proof_bytes());
  ASSIGN_OR_RETURN(const Imported proof, Import({.dtype = DType::kU8,
                                                 .shape = Shape({bytes}),
                                                 .bytes = passed.proof_bytes()},
                                                ticket));
  if (proof.given.valid()) RETURN_IF_ERROR(proof.given.Await(kProofLimit));
  ASSIGN_OR_RETURN(const Tensor read, gpu_->Download(proof.tensor));
  return SumOf(read);
}

absl::Status IpcImports::Add(const wire::CudaIpcControl::Passed& passed,
                             Segment segment, Events events) {
  MutexLock lock(mutex_);
  const bool first = events_.count(passed.gpu()) == 0;
  if (first == events.empty() || segments_.size() >= kMaxImportedSegments ||
      events_.size() > kMaxGpus) {
    return absl::InvalidArgumentError(absl::StrCat(
        "segment ", passed.segment(), " of cuda:", passed.gpu(), " with ",
        events.size(), " events, beside ", segments_.size(), " segments"));
  }
  if (!segments_.emplace(passed.segment(), std::move(segment)).second) {
    return absl::InvalidArgumentError(
        absl::StrCat("segment ", passed.segment(), " for the second time"));
  }
  if (first) events_[passed.gpu()] = std::move(events);
  return absl::OkStatus();
}

void IpcImports::Close(uint32_t id) {
  Segment closed;  // destroyed after the lock
  MutexLock lock(mutex_);
  const auto found = segments_.find(id);
  if (found == segments_.end()) return;
  closed = std::move(found->second);
  segments_.erase(found);
}

absl::StatusOr<IpcImports::Source> IpcImports::Check(
    const TensorSpec& spec, const wire::CudaIpcTicket& ticket) {
  MutexLock lock(mutex_);
  const auto found = segments_.find(ticket.segment());
  if (found == segments_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor in the unknown segment ", ticket.segment()));
  }
  const Segment& segment = found->second;
  if (spec.dtype == DType::kBool || ticket.bytes() == 0 ||
      ticket.bytes() != spec.bytes ||
      ticket.offset() % SizeOf(spec.dtype) != 0 ||
      ticket.offset() > segment.bytes ||
      ticket.bytes() > segment.bytes - ticket.offset()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a tensor of ", spec.bytes, " bytes in ", ticket.bytes(), " at ",
        ticket.offset(), " of a segment of ", segment.bytes));
  }
  const Events& events = events_.at(segment.gpu);
  if (ticket.event() >= events.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "event ", ticket.event(), " of ", events.size(), " that were passed"));
  }
  const Claim claim{ticket.lease(), {segment.gpu, ticket.event()}};
  if (waited_for_.count(claim.event) > 0 ||
      !leases_.insert(claim.lease).second) {
    return absl::InvalidArgumentError(
        absl::StrCat("the lease ", claim.lease, " or its event ",
                     ticket.event(), " for the second time"));
  }
  waited_for_.insert(claim.event);
  counts_.Add(spec.bytes);
  return Source{segment, events[ticket.event()], claim};
}

absl::StatusOr<Imported> IpcImports::Import(const TensorSpec& spec,
                                            const wire::CudaIpcTicket& ticket) {
  ASSIGN_OR_RETURN(const Source source, Check(spec, ticket));
  ASSIGN_OR_RETURN(const Tensor target, gpu_->Make(spec));
  const auto* from = static_cast<const std::byte*>(source.segment.base.get()) +
                     ticket.offset();
  if (gpu_->HasEnded(source.ready)) {
    RETURN_IF_ERROR(Copy(target, from, source));
    return Imported(target);
  }
  const auto poller = poller_.lock();
  if (poller == nullptr) return absl::CancelledError("this worker ends");
  const Promise<void> given;
  poller->Add(
      [self = shared_from_this(), target, from, source, given] {
        if (!self->lost_ && !self->gpu_->HasEnded(source.ready)) return false;
        self->CopyWhenReady(target, from, source, given);
        return true;
      },
      ready_times_);
  return Imported(target, given.future());
}

// The GPU never waits for the other process or for a thread of this one,
// because such a thread might itself wait for the GPU (docs/transport.md).
void IpcImports::CopyWhenReady(const Tensor& target, const void* from,
                               const Source& source,
                               const Promise<void>& given) {
  const absl::Status begun =
      lost_ ? absl::CancelledError("the connection has ended")
            : Copy(target, from, source);
  given.Set(begun);
  if (!begun.ok()) port_->Broke(std::string(begun.message()));
}

absl::Status IpcImports::Copy(const Tensor& target, const void* from,
                              const Source& source) {
  const auto poller = poller_.lock();
  if (poller == nullptr) return absl::CancelledError("this worker ends");
  ASSIGN_OR_RETURN(Poller::Query ended, gpu_->Copy(target, from));
  // The segment stays open until the copy has ended.
  poller->Add([self = shared_from_this(), base = source.segment.base,
               claim = source.claim, ended = std::move(ended)]() mutable {
    if (!ended()) return false;
    self->Return(claim);
    return true;
  });
  return absl::OkStatus();
}

void IpcImports::Return(const Claim& claim) {
  {
    MutexLock lock(mutex_);
    leases_.erase(claim.lease);
    waited_for_.erase(claim.event);
  }
  const bool hurries = Clock::now() < hurries_until_.load();
  port_->Release(claim.lease, hurries ? kHurried : kUnhurried);
}

void IpcImports::Hurry() { hurries_until_ = Clock::now() + kWaitsAgain; }

IpcImports::Segments IpcImports::Forget() {
  lost_ = true;
  MutexLock lock(mutex_);
  return std::exchange(segments_, {});
}

ReceivedTensors IpcImports::counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

}  // namespace baton::rpc
