// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/channels/ipc_tensors.h"
#include "rpc/wire.pb.h"

namespace baton::rpc {
namespace {

// The most tensors of one GPU that may be in use by one peer.
constexpr uint32_t kEvents = 64;
constexpr size_t kMaxExportedSegments = 4096;
constexpr int64_t kProofWords = 512;  // 4 KB

// Returns random words, on the CPU.
Tensor ProofWords() {
  std::random_device seed;
  std::mt19937_64 next((uint64_t{seed()} << 32) | seed());
  Tensor words = Tensor::Empty({kProofWords}, {.dtype = DType::kI64});
  for (int64_t i = 0; i < kProofWords; ++i)
    words.data<int64_t>()[i] = static_cast<int64_t>(next());
  return words;
}

}  // namespace

// Members in the order of destruction: the segments come last.
struct IpcExports::Lost {
  ~Lost() {
    for (auto& [id, lease] : leases) lease.read->End();
    leases.clear();
    gpus.clear();
    for (const auto& [base, segment] : segments) gpu->Unshare(segment.place);
  }
  std::shared_ptr<IpcGpu> gpu;
  std::map<const void*, Segment> segments;
  std::map<int, Gpu> gpus;
  std::map<uint64_t, Lease> leases;
};

IpcExports::~IpcExports() { Lose(); }

std::optional<Ticket> IpcExports::Export(const Tensor& tensor,
                                         std::optional<Need>& need) {
  // The bytes of a bool may only be 0 or 1, which nobody checks on a GPU.
  if (!tensor.device().is_cuda() || tensor.nbytes() == 0 ||
      tensor.dtype() == DType::kBool)
    return std::nullopt;
  const Tensor dense = tensor.Contiguous(tensor.SuggestFormat());
  const auto place = gpu_->Find(dense);
  std::optional<Taken> taken;
  {
    MutexLock lock(mutex_);
    if (place.has_value()) taken = TakeLocked(dense, *place, need);
    if (!taken.has_value()) {
      ++counts_.declined;
      return std::nullopt;
    }
  }
  auto ticket = Ticketed(dense, *place, *taken);
  if (!ticket.ok()) {
    GiveBack(taken->lease).IgnoreError();
    return std::nullopt;
  }
  return Ticket{*std::move(ticket), taken->lease};
}

std::optional<IpcExports::Taken> IpcExports::TakeLocked(
    const Tensor& tensor, const IpcGpu::Place& place,
    std::optional<Need>& need) {
  if (lost_) return std::nullopt;
  if (reach_ == IpcReach::kOneGpu && place.gpu != gpu_->own())
    return std::nullopt;
  const auto [gpu, new_gpu] = gpus_.try_emplace(place.gpu);
  if (new_gpu) {
    need = Need{place, true};
    return std::nullopt;
  }
  if (gpu->second.state != State::kOpen) return std::nullopt;
  const auto segment = segments_.find(place.segment);
  if (segment == segments_.end()) {
    if (segments_.size() >= kMaxExportedSegments) return std::nullopt;
    segments_[place.segment] = {.place = place};
    need = Need{place, false};
    return std::nullopt;
  }
  if (segment->second.state != State::kOpen || gpu->second.free.empty())
    return std::nullopt;
  return LeaseLocked(tensor, segment->second, gpu->second);
}

IpcExports::Taken IpcExports::LeaseLocked(const Tensor& tensor,
                                          Segment& segment, Gpu& gpu) {
  const uint32_t slot = gpu.free.back();
  gpu.free.pop_back();
  const uint64_t id = next_lease_++;
  auto read = std::make_shared<OutsideRead>(wanted_);
  leases_[id] = {segment.place, slot, tensor.nbytes(), tensor.storage(), read};
  ++segment.leases;
  segment.used = Clock::now();
  counts_.Lease(tensor.nbytes());
  return {segment.id, id, slot, gpu.events[slot], std::move(read)};
}

// From here on writers wait, so what can fail comes first.
absl::StatusOr<std::string> IpcExports::Ticketed(const Tensor& tensor,
                                                 const IpcGpu::Place& place,
                                                 const Taken& taken) {
  RETURN_IF_ERROR(gpu_->Record(taken.event, tensor));
  tensor.storage()->use()->ReadOutside(taken.read);
  wire::CudaIpcTicket ticket;
  ticket.set_segment(taken.segment);
  ticket.set_offset(place.offset);
  ticket.set_bytes(tensor.nbytes());
  ticket.set_event(taken.slot);
  ticket.set_lease(taken.lease);
  return ticket.SerializeAsString();
}

absl::Status IpcExports::GiveBack(uint64_t id) {
  Lease lease;
  {
    MutexLock lock(mutex_);
    if (lost_) return absl::OkStatus();
    const auto found = leases_.find(id);
    if (found == leases_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("gives back the lease ", id, ", which is not out"));
    }
    lease = std::move(found->second);
    leases_.erase(found);
    gpus_.at(lease.place.gpu).free.push_back(lease.event);
    --segments_.at(lease.place.segment).leases;
    counts_.GiveBack(lease.bytes);
  }
  lease.read->End();
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> IpcExports::ShareLocked(
    const IpcGpu::Place& place, wire::CudaIpcControl::Passed& passed) {
  if (lost_) return absl::CancelledError("the connection has ended");
  auto handle = gpu_->Share(place);
  Segment& segment = segments_[place.segment];
  if (!handle.ok()) {
    segment.state = State::kRefused;
    return handle.status();
  }
  segment = {.id = next_segment_++, .place = place};
  counts_.capacity_bytes += place.segment_bytes;
  passed.set_segment(segment.id);
  passed.set_gpu(place.gpu);
  passed.set_bytes(place.segment_bytes);
  passed.set_handle(*std::move(handle));
  return segment.id;
}

absl::StatusOr<wire::CudaIpcControl::Passed> IpcExports::Pass(
    const IpcGpu::Place& place) {
  wire::CudaIpcControl::Passed passed;
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(ShareLocked(place, passed).status());
  return passed;
}

absl::StatusOr<wire::CudaIpcControl::Passed> IpcExports::PassFirst(int index) {
  Gpu gpu;
  wire::CudaIpcControl::Passed passed;
  for (uint32_t i = 0; i < kEvents; ++i) {
    ASSIGN_OR_RETURN(IpcGpu::Event event, gpu_->MakeEvent(index));
    passed.add_events(event.handle);
    gpu.events.push_back(std::move(event));
  }
  gpu.free.resize(kEvents);
  std::iota(gpu.free.rbegin(), gpu.free.rend(), 0);
  const Tensor words = ProofWords();
  gpu.sum = SumOf(words);
  ASSIGN_OR_RETURN(gpu.proof, gpu_->Upload(words, index));
  const auto place = gpu_->Find(gpu.proof);
  if (!place.has_value()) {
    return absl::UnavailableError("its memory cannot be shared");
  }
  const Tensor proof = gpu.proof;
  Taken taken;
  {
    MutexLock lock(mutex_);
    ASSIGN_OR_RETURN(gpu.first, ShareLocked(*place, passed));
    Gpu& entry = gpus_[index];
    entry = std::move(gpu);
    taken = LeaseLocked(proof, segments_.at(place->segment), entry);
  }
  ASSIGN_OR_RETURN(*passed.mutable_proof(), Ticketed(proof, *place, taken));
  passed.set_proof_bytes(proof.nbytes());
  return passed;
}

absl::StatusOr<bool> IpcExports::OnOpened(uint32_t id,
                                          const std::string& failure,
                                          uint64_t sum) {
  MutexLock lock(mutex_);
  for (auto& [base, segment] : segments_) {
    // Segments that were needed but not passed yet have no id.
    if (id == 0 || segment.id != id || segment.state != State::kPassed)
      continue;
    Gpu& gpu = gpus_.at(segment.place.gpu);
    const bool first = gpu.first == id;
    std::string why = failure;
    if (why.empty() && first && sum != gpu.sum) {
      why = "another process reads something else than was written";
    }
    segment.state = why.empty() ? State::kOpen : State::kRefused;
    segment.used = Clock::now();
    if (first) gpu.state = segment.state;
    if (!why.empty()) {
      why_not_ = why;
      return absl::UnavailableError(why);
    }
    return first;
  }
  return absl::InvalidArgumentError(
      "it speaks of a segment that it was never "
      "passed");
}

std::vector<uint32_t> IpcExports::TakeIdle(std::chrono::milliseconds idle) {
  const auto before = Clock::now() - idle;
  std::vector<uint32_t> ids;
  MutexLock lock(mutex_);
  for (auto& [base, segment] : segments_) {
    if (segment.state != State::kOpen || segment.leases > 0 ||
        segment.used > before ||
        gpus_.at(segment.place.gpu).first == segment.id)
      continue;
    segment.state = State::kClosing;
    ids.push_back(segment.id);
  }
  return ids;
}

void IpcExports::OnClosed(uint32_t id) {
  IpcGpu::Place place;
  {
    MutexLock lock(mutex_);
    const auto found = std::find_if(
        segments_.begin(), segments_.end(), [&](const auto& entry) {
          return entry.second.id == id && entry.second.state == State::kClosing;
        });
    if (found == segments_.end()) return;
    place = found->second.place;
    counts_.capacity_bytes -= place.segment_bytes;
    segments_.erase(found);
  }
  gpu_->Unshare(place);
}

std::shared_ptr<IpcExports::Lost> IpcExports::Lose() {
  auto lost = std::make_shared<Lost>();
  lost->gpu = gpu_;
  MutexLock lock(mutex_);
  lost_ = true;
  lost->segments.swap(segments_);
  // Segments that were needed but not passed yet are not shared.
  std::erase_if(lost->segments,
                [](const auto& entry) { return entry.second.id == 0; });
  lost->gpus.swap(gpus_);
  lost->leases.swap(leases_);
  counts_.Forget();
  counts_.capacity_bytes = 0;
  return lost;
}

SentTensors IpcExports::counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

std::string IpcExports::why_not() const {
  MutexLock lock(mutex_);
  return why_not_;
}

}  // namespace baton::rpc
