// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/cuda/ipc.h"
#include "core/cuda/nccl_group.h"
#include "core/graph.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/collectives/nccl_backend.h"
#include "rpc/collectives/process_group.h"

// How the GPUs of a group join NCCL, and how their collectives are recorded.
namespace baton::rpc {
namespace {

// The interval at which a member that waits for NCCL checks whether the group
// was broken.
constexpr std::chrono::milliseconds kGlance{50};

template <size_t kSize>
void Write(char (&field)[kSize], const std::string& bytes) {
  std::memcpy(field, bytes.data(), std::min(bytes.size(), kSize));
}

}  // namespace

// What a member tells the others about its GPU. Exchanged as bytes; `version`
// is empty if the member has no GPU that NCCL can use.
struct ProcessGroup::GpuCard {
  char version[32] = {};  // NCCL's, ends with a zero
  char gpu[16] = {};      // the UUID
  char id[128] = {};      // of the NCCL group, set by rank 0
};

ProcessGroup::Made ProcessGroup::MeetGpus() {
  const auto self = shared_from_this();
  const bool all = std::all_of(
      members_.begin(), members_.end(),
      [](const WorkerInfo& member) { return member.compute.device.is_cuda(); });
  if (!options_.gpus || !all) {
    no_gpu_ = absl::InvalidArgumentError(
        options_.gpus ? "not every member of the group has declared a GPU"
                      : "the group was made without GPUs");
    return ReadyFuture<std::shared_ptr<ProcessGroup>>(self);
  }
  const Promise<std::shared_ptr<ProcessGroup>> made;
  thread_.Post([self, made] {
    const absl::Status status =
        CatchErrors([&] { return self->TryToMeetGpus(); });
    if (status.ok()) {
      made.Set(self);
      return;
    }
    self->Abort(Annotate(
        status, absl::StrCat("the GPUs of group ", self->options_.name)));
    made.Set(self->status());
  });
  return made.future();
}

absl::Status ProcessGroup::TryToMeetGpus() {
  if (size() == 1) return JoinGpus("");
  ASSIGN_OR_RETURN(const std::vector<GpuCard> cards, ExchangeGpuCards());
  // All members compare the same cards, so no_gpu_ is the same at all.
  no_gpu_ = CheckGpuCards(cards);
  if (!no_gpu_.ok()) return absl::OkStatus();
  return JoinGpus(std::string(cards.front().id, sizeof(GpuCard::id)));
}

absl::StatusOr<std::vector<ProcessGroup::GpuCard>>
ProcessGroup::ExchangeGpuCards() {
  GpuCard own;
  const int gpu = agent_.self().compute.device.index();
  const absl::Status written = CatchErrors([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::string version, cuda::NcclVersion());
    Write(own.gpu, cuda::UuidOf(gpu));
    if (rank_ == 0) {
      ASSIGN_OR_RETURN(const std::string id, cuda::NewNcclId());
      Write(own.id, id);
    }
    Write(own.version, version.substr(0, sizeof(own.version) - 1));
    return absl::OkStatus();
  });
  if (!written.ok()) {
    LogWarning("group ", options_.name, ": cuda:", gpu,
               " takes no part in NCCL: ", written.ToString());
  }
  constexpr auto kBytes = static_cast<int64_t>(sizeof(GpuCard));
  const TensorOptions bytes{.dtype = DType::kU8};
  CollectiveWork work{
      .what = {.kind = CollectiveKind::kAllGather, .dtype = DType::kU8},
      .in = Tensor::Empty({kBytes}, bytes),
      .out = Tensor::Empty({kBytes * size()}, bytes),
      .deadline = DeadlineOf({})};
  work.what.count = kBytes;
  std::memcpy(work.in.raw_data(), &own, sizeof(own));
  RETURN_IF_ERROR(backend_->Run(work).Await(kNoLimit));
  std::vector<GpuCard> cards(members_.size());
  std::memcpy(cards.data(), work.out.raw_data(), work.out.nbytes());
  return cards;
}

absl::Status ProcessGroup::CheckGpuCards(
    const std::vector<GpuCard>& cards) const {
  std::map<std::string, int> seen;
  for (int rank = 0; rank < size(); ++rank) {
    const GpuCard& card = cards[static_cast<size_t>(rank)];
    const std::string version(card.version,
                              strnlen(card.version, sizeof(card.version)));
    const std::string first(cards[0].version,
                            strnlen(cards[0].version, sizeof(card.version)));
    if (version.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(NameOfRank(rank), " has no NCCL, or not its GPU"));
    }
    if (version != first) {
      return absl::InvalidArgumentError(
          absl::StrCat(NameOfRank(0), " has NCCL ", first, ", ",
                       NameOfRank(rank), " ", version));
    }
    const auto [other, is_new] =
        seen.emplace(std::string(card.gpu, sizeof(card.gpu)), rank);
    if (is_new) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(NameOfRank(other->second), " and ", NameOfRank(rank),
                     " have the same GPU, and NCCL takes one for each member"));
  }
  return absl::OkStatus();
}

absl::Status ProcessGroup::JoinGpus(const std::string& id) {
  const Device device = agent_.self().compute.device;
  std::shared_ptr<cuda::NcclGroup> joined;
  if (size() > 1) {
    auto joining = cuda::JoinNcclGroup(id, rank_, size(), device.index());
    const auto deadline = DeadlineOf({});
    while (!joining.ready()) {
      joining.Await(kGlance).status().IgnoreError();
      RETURN_IF_ERROR(status());
      if (Clock::now() > deadline)
        return absl::DeadlineExceededError("NCCL has not met the others");
    }
    ASSIGN_OR_RETURN(joined, joining.Await());
  }
  gpu_ =
      std::make_unique<NcclBackend>(device, rank_, size(), std::move(joined));
  MutexLock lock(mutex_);
  open_gpu_ = gpu_.get();
  return broken_;
}

absl::Status ProcessGroup::Takes(Device device) const {
  if (backend_->Takes(device)) return absl::OkStatus();
  if (gpu_ != nullptr && gpu_->Takes(device)) return absl::OkStatus();
  const std::string wrong =
      absl::StrCat("not for tensors of ", device.ToString());
  if (gpu_ == nullptr && !no_gpu_.ok()) return Annotate(no_gpu_, wrong);
  return absl::InvalidArgumentError(
      absl::StrCat(wrong, ": this worker has declared ",
                   agent_.self().compute.device.ToString()));
}

Stream ProcessGroup::StreamOf(Device device) const {
  return gpu_ != nullptr && gpu_->Takes(device) ? gpu_->stream()
                                                : CurrentStream(device);
}

CollectiveBackend& ProcessGroup::BackendFor(const Tensor& tensor) const {
  if (tensor.defined() && !backend_->Takes(tensor.device())) return *gpu_;
  return *backend_;
}

void ProcessGroup::NoteRecordingLocked() {
  const uint64_t recording = Graph::CurrentRecording();
  if (recording == 0) return;
  if (recording != recording_) {
    recording_ = recording;
    recorded_ = std::make_shared<int64_t>(0);
    Graph::AfterReplay([weak = weak_from_this(), calls = recorded_] {
      if (const auto self = weak.lock()) self->OnReplay(*calls);
    });
  }
  ++*recorded_;
}

void ProcessGroup::OnReplay(int64_t collectives) {
  const Collective what{.kind = CollectiveKind::kReplay, .count = collectives};
  MutexLock lock(post_mutex_);
  // No caller waits for the replay's end: an error becomes the group's status.
  Run(*gpu_,
      {.what = what,
       .sequence = recorder_.Begin(what),
       .in = {},
       .out = {},
       .deadline = DeadlineOf({})},
      Promise<void>());
  if (const absl::Status why = status(); !why.ok()) throw Error(why);
}

}  // namespace baton::rpc
