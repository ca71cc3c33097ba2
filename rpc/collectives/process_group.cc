// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/collectives/process_group.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/collectives/cpu_backend.h"
#include "rpc/collectives/nccl_backend.h"
#include "rpc/security.h"
#include "rpc/spares.h"

namespace baton::rpc {
namespace {

constexpr char kSharedMemory[] = "shared memory", kMessages[] = "messages",
               kSelf[] = "self";

absl::StatusOr<uint64_t> NewTicket() {
  ASSIGN_OR_RETURN(const std::string key, NewKey());
  uint64_t ticket = 0;
  std::memcpy(&ticket, key.data(), sizeof(ticket));
  return ticket;
}

// Receives from whichever of two queues the sender uses. A sender never
// switches.
class EitherReceiver final : public SlotReceiver {
 public:
  EitherReceiver(std::unique_ptr<SlotReceiver> first,
                 std::unique_ptr<SlotReceiver> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  absl::StatusOr<Chunk> Front() override {
    if (used_ != nullptr) return used_->Front();
    for (SlotReceiver* queue : {first_.get(), second_.get()}) {
      ASSIGN_OR_RETURN(const Chunk chunk, queue->Front());
      if (chunk.data == nullptr) continue;
      used_ = queue;
      return chunk;
    }
    return Chunk{};
  }
  void Pop() override { used_->Pop(); }

 private:
  const std::unique_ptr<SlotReceiver> first_, second_;
  SlotReceiver* used_ = nullptr;
};

}  // namespace

// The workers that are to be in a group. They meet at the first of them, or
// with `survivors` at the first that is not lost.
struct ProcessGroup::Seating {
  std::string key;
  std::vector<WorkerInfo> seats;
  bool survivors = false;
};

ProcessGroup::ProcessGroup(Agent& agent,
                           std::shared_ptr<Collectives> collectives,
                           GroupOptions options,
                           std::shared_ptr<FutexEvent> wakeup)
    : agent_(agent),
      collectives_(std::move(collectives)),
      options_(std::move(options)),
      wakeup_(std::move(wakeup)),
      messages_(std::make_shared<MessageQueues>(wakeup_)) {}

ProcessGroup::~ProcessGroup() { collectives_->Remove(ticket_); }

ProcessGroup::Made ProcessGroup::Make(Agent& agent, GroupOptions options) {
  Seating seating{.key = absl::StrCat("make:", options.name), .seats = {}};
  if (options.members.empty()) {
    seating.seats = agent.workers();
    std::erase_if(seating.seats, IsSpare);
  }
  for (const std::string& name : options.members) {
    auto worker = agent.Find(name);
    if (!worker.ok())
      return ReadyFuture<std::shared_ptr<ProcessGroup>>(worker.status());
    seating.seats.push_back(*std::move(worker));
  }
  return MakeSeated(agent, std::move(options), std::move(seating));
}

ProcessGroup::Made ProcessGroup::Sub(const std::string& name,
                                     const std::vector<int>& ranks) {
  Seating seating{.key = absl::StrCat("sub:", tickets_[0], ":", name),
                  .seats = {}};
  for (const int rank : ranks) {
    if (rank < 0 || rank >= size()) {
      return ReadyFuture<std::shared_ptr<ProcessGroup>>(
          absl::InvalidArgumentError(
              absl::StrCat("a group of ", size(), " has no rank ", rank)));
    }
    seating.seats.push_back(members_[static_cast<size_t>(rank)]);
  }
  GroupOptions options = options_;
  options.name = absl::StrCat(options_.name, "/", name);
  return MakeSeated(agent_, std::move(options), std::move(seating));
}

ProcessGroup::Made ProcessGroup::Shrink() {
  Abort(absl::CancelledError(
      absl::StrCat("group ", options_.name, " goes on as a smaller one")));
  return MakeSeated(agent_, options_,
                    {.key = absl::StrCat("shrink:", tickets_[0]),
                     .seats = members_,
                     .survivors = true});
}

ProcessGroup::Made ProcessGroup::MakeSeated(Agent& agent, GroupOptions options,
                                            Seating seating) {
  const auto make = [&]() -> absl::StatusOr<std::shared_ptr<ProcessGroup>> {
    ASSIGN_OR_RETURN(auto collectives, Collectives::Of(agent));
    ASSIGN_OR_RETURN(auto wakeup, FutexEvent::Make());
    return std::shared_ptr<ProcessGroup>(new ProcessGroup(
        agent, std::move(collectives), std::move(options), std::move(wakeup)));
  };
  const auto failed = [](const absl::Status& why) {
    return ReadyFuture<std::shared_ptr<ProcessGroup>>(why);
  };
  auto group = make();
  if (!group.ok()) return failed(group.status());
  auto request = (*group)->RequestFor(seating);
  if (!request.ok()) return failed(request.status());
  // Register the group before other members learn its ticket.
  (*group)->collectives_->Add((*group)->ticket_, *group);
  return Join(agent, std::move(seating), *request, 0)
      .Then([self = *group, asked = *request](const GroupRoster& roster) {
        const absl::Status opened = self->Open(asked, roster);
        return opened.ok() ? self->MeetGpus()
                           : ReadyFuture<std::shared_ptr<ProcessGroup>>(opened);
      });
}

absl::StatusOr<GroupRequest> ProcessGroup::RequestFor(const Seating& seating) {
  GroupRequest request{.key = seating.key,
                       .seats = seating.seats,
                       .seat = -1,
                       .survivors = seating.survivors,
                       .patience_ms = options_.timeout.count(),
                       .hello = {}};
  const std::string& own = agent_.self().name;
  for (size_t i = 0; i < seating.seats.size(); ++i)
    if (seating.seats[i].name == own) request.seat = static_cast<int32_t>(i);
  if (request.seat < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker ", own, " is no member of the group that it makes"));
  }
  ASSIGN_OR_RETURN(ticket_, NewTicket());
  request.hello.ticket = ticket_;
  request.hello.worker = agent_.self();
  const int seats = static_cast<int>(seating.seats.size());
  if (!options_.shared_memory || seats == 1) return request;
  // If the shared memory cannot be made, messages are used.
  auto queues = SharedQueues::Make(seats, SlotQueueSize::For(seats));
  if (!queues.ok()) return request;
  if (auto handle = (*queues)->HandleFor(*wakeup_); handle.ok()) {
    queues_ = *queues;
    request.hello.queues = *std::move(handle);
  }
  return request;
}

// If the host is lost as well, the survivors meet at the next worker.
Future<GroupRoster> ProcessGroup::Join(Agent& agent, Seating seating,
                                       GroupRequest request, size_t host) {
  const auto collectives = *Collectives::Of(agent);
  while (seating.survivors && host + 1 < seating.seats.size() &&
         !collectives->meetings().WhyLost(seating.seats[host]).ok())
    ++host;
  const WorkerInfo& where = seating.seats[host];
  // The call's limit is longer than patience_ms, so that the host can first
  // report who is missing.
  const std::chrono::milliseconds limit(request.patience_ms + 1000);
  Future<GroupRoster> roster = agent.Async<&collective_calls::Join>(
      where, CallOptions{.timeout = limit}, request);
  if (!seating.survivors || host + 1 >= seating.seats.size()) return roster;
  Promise<GroupRoster> promise;
  roster.OnReady([promise, &agent, seating = std::move(seating),
                  request = std::move(request),
                  host](const absl::StatusOr<GroupRoster>& result) {
    if (result.ok() || !absl::IsUnavailable(result.status())) {
      promise.Set(result);
      return;
    }
    Join(agent, seating, request, host + 1)
        .OnReady([promise](const absl::StatusOr<GroupRoster>& next) {
          promise.Set(next);
        });
  });
  return promise.future();
}

absl::Status ProcessGroup::Open(const GroupRequest& request,
                                const GroupRoster& roster) {
  if (roster.seats.size() != roster.hellos.size())
    return absl::DataLossError("a list of members that is none");
  std::vector<SlotQueues::Ends> ends;
  for (size_t i = 0; i < roster.hellos.size(); ++i) {
    const GroupHello& hello = roster.hellos[i];
    members_.push_back(hello.worker);
    tickets_.push_back(hello.ticket);
    if (hello.ticket == ticket_) {
      rank_ = static_cast<int>(i);
      ends.emplace_back();
      paths_.emplace_back(kSelf);
      continue;
    }
    bool shared = false;
    ends.push_back(EndsWith(hello, roster.seats[i], request, &shared));
    paths_.emplace_back(shared ? kSharedMemory : kMessages);
  }
  if (rank_ < 0) return absl::UnavailableError("the others went on without us");
  backend_ = std::make_unique<CpuBackend>(
      rank_, std::move(ends),
      SlotQueueSize::For(static_cast<int>(request.seats.size())), wakeup_);
  {
    MutexLock lock(mutex_);
    opened_ = true;
  }
  // Members may have been lost while the group was being opened.
  for (const WorkerInfo& member : members_) {
    const absl::Status lost = collectives_->meetings().WhyLost(member);
    if (!lost.ok()) Abort(lost);
  }
  return absl::OkStatus();
}

SlotQueues::Ends ProcessGroup::EndsWith(const GroupHello& hello, int seat,
                                        const GroupRequest& own, bool* shared) {
  const int seats = static_cast<int>(own.seats.size());
  const SlotQueueSize size = SlotQueueSize::For(seats);
  SlotQueues::Ends ends;
  ends.in = messages_->In(hello.ticket);
  if (queues_ != nullptr && !hello.queues.machine.empty()) {
    auto theirs = SharedQueues::Open(hello.queues, seats, size);
    auto wakeup = SharedQueues::OpenWaker(hello.queues);
    if (theirs.ok() && wakeup.ok()) {
      *shared = true;
      ends.in = std::make_unique<EitherReceiver>(queues_->In(seat, *wakeup),
                                                 std::move(ends.in));
      ends.out = (*theirs)->Out(own.seat, *wakeup);
      return ends;
    }
  }
  MessageQueues::Sender sender;
  sender.ticket = ticket_;
  sender.make = [this, to = hello.worker](size_t bytes) {
    const Shape shape({static_cast<int64_t>(bytes)});
    auto tensor = agent_.EmptyFor(to, shape, {.dtype = DType::kU8});
    return tensor.ok() ? *std::move(tensor)
                       : Tensor::Empty(shape, {.dtype = DType::kU8});
  };
  sender.send = [this, to = hello.worker,
                 ticket = hello.ticket](ChunkMessage chunk) {
    return agent_.Async<&collective_calls::TakeChunk>(
        to, CallOptions{.timeout = kNoLimit}, ticket, std::move(chunk));
  };
  ends.out = MessageQueues::Out(std::move(sender), size, wakeup_);
  return ends;
}

std::string ProcessGroup::PathFrom(int rank) const {
  return paths_.at(static_cast<size_t>(rank));
}

std::string ProcessGroup::NameOfRank(int rank) const {
  return absl::StrCat("rank ", rank, " (",
                      members_[static_cast<size_t>(rank)].name, ")");
}

Future<void> ProcessGroup::TakeChunk(const ChunkMessage& chunk) {
  return messages_->Deliver(chunk);
}

Future<void> ProcessGroup::TakeSent(const TaggedTensor& sent) {
  return mailbox_.Deliver(sent);
}

}  // namespace baton::rpc
