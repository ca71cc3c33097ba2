// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/log.h"
#include "core/status.h"
#include "models/distributed/data_parallel/elastic.h"
#include "rpc/codec.h"

// How members form a group, and make their state equal.
namespace baton::dist {
namespace {

using std::chrono::milliseconds;

// The pause for others that also look for members.
constexpr milliseconds kPause{20};
// A busy worker answers within this time, or is asked again.
constexpr milliseconds kAnswer{5000};
// A waiting member checks its own state at this interval.
constexpr milliseconds kPatience{200};
// The number of consecutive groups that may break before a step is done.
constexpr int kMostTries = 100;

constexpr char kModule[] = "module:", kOptimizer[] = "optimizer:";

// A tensor that will be sent next.
struct Announced {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> dims;

  static constexpr auto Fields() {
    return std::tuple{&Announced::name, &Announced::dtype, &Announced::dims};
  }
};

struct Announcement {
  ElasticTraining::Done last;  // the step before
  std::vector<Announced> tensors = {};

  static constexpr auto Fields() {
    return std::tuple{&Announcement::last, &Announcement::tensors};
  }
};

template <typename T>
std::string Encoded(const T& value) {
  rpc::Encoder encoder;
  encoder.Put(value);
  return std::move(encoder.bytes());
}

template <typename T>
absl::StatusOr<T> Decoded(std::string bytes) {
  rpc::Decoder decoder(std::move(bytes));
  T value = decoder.Get<T>();
  RETURN_IF_ERROR(decoder.Finish());
  return value;
}

// Broadcasts `root`'s text; all members know its length.
absl::StatusOr<std::string> BroadcastText(rpc::ProcessGroup& group, int root,
                                          const std::string& text,
                                          int64_t length) {
  const Tensor bytes = Tensor::Zeros({length}, {.dtype = DType::kU8});
  if (group.rank() == root)
    std::memcpy(bytes.data<uint8_t>(), text.data(), text.size());
  RETURN_IF_ERROR(group.Broadcast(bytes, root).Await(kNoLimit));
  return std::string(reinterpret_cast<const char*>(bytes.data<uint8_t>()),
                     static_cast<size_t>(length));
}

nn::StateMap WithPrefix(const char* prefix, const nn::StateMap& state) {
  nn::StateMap named;
  for (const auto& [name, tensor] : state)
    named.emplace(absl::StrCat(prefix, name), tensor);
  return named;
}

nn::StateMap OfPrefix(const char* prefix, const nn::StateMap& state) {
  nn::StateMap named;
  for (const auto& [name, tensor] : state) {
    absl::string_view rest = name;
    if (absl::ConsumePrefix(&rest, prefix))
      named.emplace(std::string(rest), tensor);
  }
  return named;
}

}  // namespace

void RegisterElastic(rpc::Registry& registry) {
  registry.AddFunction<&elastic_calls::PartOf>()
      .AddFunction<&elastic_calls::Ask>();
}

void AttachElastic(rpc::Agent& agent) {
  agent.SetService(std::make_shared<ElasticHandlers>(agent.self().name));
}

absl::Status ElasticTraining::Enter() {
  const auto deadline = Clock::now() + options_.timeout;
  while (group_ == nullptr) {
    const absl::Status tried = TryToEnter(deadline);
    const bool again = IsLoss(tried) || absl::IsDeadlineExceeded(tried);
    if (!tried.ok() && (!again || Clock::now() > deadline))
      return Annotate(tried, absl::StrCat("elastic run ", options_.run));
    if (group_ != nullptr) break;
    const Promise<void> later;
    agent_.timer().After(kPause, [later] { later.Set(absl::OkStatus()); });
    later.future().Await(kNoLimit).IgnoreError();
  }
  return Settle();
}

// Returns Unavailable if another try may succeed.
absl::Status ElasticTraining::TryToEnter(Clock::time_point deadline) {
  ASSIGN_OR_RETURN(const std::string leader, FindLeader());
  if (leader == agent_.self().name) {
    // Those that may not begin it have no say.
    if (!options_.first_workers.empty()) handlers_->ForgetAskers(options_.run);
    if (!handlers_->Begin(options_.run, agent_))
      return absl::UnavailableError("another worker is about to begin it");
    place_ = {.step = 0};
    ASSIGN_OR_RETURN(group_, MakeGroup(absl::StrCat(options_.run, "@",
                                                    agent_.self().incarnation),
                                       {agent_.self()}));
    return absl::OkStatus();
  }
  const auto left =
      std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
  ASSIGN_OR_RETURN(
      const ElasticInvitation invitation,
      agent_
          .Async<&elastic_calls::Ask>(
              leader, rpc::CallOptions{.timeout = std::max(left, kAnswer)},
              options_.run)
          .Await(kNoLimit));
  ASSIGN_OR_RETURN(group_, MakeGroup(invitation.group, invitation.members));
  return absl::OkStatus();
}

// Returns the leader of the run, or the worker that may begin it, maybe this
// one.
absl::StatusOr<std::string> ElasticTraining::FindLeader() {
  handlers_->ForgetAskers(options_.run);
  const std::vector<rpc::WorkerInfo> workers = agent_.workers();
  std::vector<Future<ElasticPart>> parts;
  for (const rpc::WorkerInfo& worker : workers) {
    parts.push_back(
        worker.name == agent_.self().name
            ? ReadyFuture<ElasticPart>(
                  ElasticPart{ElasticPart::Kind::kEntering})
            : agent_.Async<&elastic_calls::PartOf>(
                  worker, rpc::CallOptions{.timeout = kAnswer}, options_.run));
  }
  std::string first;
  absl::Status unknown;
  for (size_t i = 0; i < workers.size(); ++i) {
    const auto part = parts[i].Await(kNoLimit);
    if (!part.ok()) {
      if (agent_.Find(workers[i]).ok()) unknown = part.status();
    } else if (part->kind == ElasticPart::Kind::kMember) {
      return part->leader;
    } else if (part->kind == ElasticPart::Kind::kEntering && first.empty() &&
               MayBegin(workers[i].name)) {
      first = workers[i].name;  // workers are ordered by rank
    }
  }
  if (!unknown.ok()) return absl::UnavailableError(unknown.message());
  if (options_.only_joins)
    return absl::DataLossError("nobody is left who has its state");
  if (!first.empty()) return first;
  return absl::UnavailableError("the worker that begins it has not come");
}

bool ElasticTraining::MayBegin(const std::string& worker) const {
  for (const rpc::WorkerInfo& first : options_.first_workers)
    if (agent_.Find(first).ok()) return worker == first.name;
  return options_.first_workers.empty();
}

absl::StatusOr<std::shared_ptr<rpc::ProcessGroup>> ElasticTraining::MakeGroup(
    const std::string& name, const std::vector<rpc::WorkerInfo>& members) {
  rpc::GroupOptions group{.name = name, .timeout = options_.timeout};
  group.gpus = false;
  for (const rpc::WorkerInfo& member : members) {
    if (!agent_.Find(member.name).ok()) agent_.AddPeer(member);
    group.members.push_back(member.name);
  }
  return rpc::ProcessGroup::Make(agent_, group).Await(kNoLimit);
}

// Repeats until the group is intact and its members have equal state.
absl::Status ElasticTraining::Mend() {
  absl::Status last;
  for (int i = 0; i < kMostTries; ++i) {
    const absl::Status broken = group_->status();
    if (!broken.ok()) {
      last = IsLoss(broken) ? Shrink() : broken;
    } else if (parallel_ == nullptr) {
      last = Agree();
    } else {
      return absl::OkStatus();
    }
    if (!last.ok() && (!IsLoss(last) || group_->status().ok())) return last;
  }
  return last;
}

// Repeats until there are enough members, with equal state, in an intact group.
absl::Status ElasticTraining::Settle() {
  const auto deadline = Clock::now() + options_.timeout;
  absl::Status last;
  for (int i = 0; i < kMostTries; ++i) {
    RETURN_IF_ERROR(Mend());
    if (invited_ > 0) {
      last = Grow();
    } else if (!begun_ || group_->size() < options_.min_members) {
      last = AwaitEnough(deadline);
    } else {
      return absl::OkStatus();
    }
    if (!last.ok() && (!IsLoss(last) || group_->status().ok())) return last;
  }
  return last;
}

bool ElasticTraining::FirstAreIn() const {
  const std::vector<rpc::WorkerInfo>& members = group_->members();
  return std::all_of(
      options_.first_workers.begin(), options_.first_workers.end(),
      [&](const rpc::WorkerInfo& first) {
        return !agent_.Find(first).ok() ||
               std::any_of(members.begin(), members.end(), [&](const auto& m) {
                 return m.incarnation == first.incarnation;
               });
      });
}

absl::Status ElasticTraining::AwaitEnough(Clock::time_point deadline) {
  if (Clock::now() > deadline) {
    return absl::DeadlineExceededError(absl::StrCat(
        "elastic run ", options_.run, " has ", group_->size(),
        " members and needs ",
        begun_ ? absl::StrCat(options_.min_members)
               : absl::StrCat("its ", options_.first_workers.size(),
                              " first ones")));
  }
  const auto enough = [&] {
    return begun_ && group_->size() >= options_.min_members;
  };
  while (Clock::now() < deadline && invited_ == 0 && !enough() &&
         group_->status().ok()) {
    const bool leads = group_->rank() == 0;
    const bool first_are_in = leads && FirstAreIn();
    if (leads && !(first_are_in && group_->size() >= options_.min_members))
      handlers_->AwaitJoinRequest(options_.run, Clock::now() + kPatience);
    const Tensor told =
        Tensor::From<int64_t>({DraftInvitation(), first_are_in ? 1 : 0});
    RETURN_IF_ERROR(group_->AllReduce(told).Await(kNoLimit));
    invited_ = told.data<int64_t>()[0];
    begun_ = begun_ || told.data<int64_t>()[1] > 0;
  }
  return absl::OkStatus();
}

absl::Status ElasticTraining::Shrink() {
  parallel_ = nullptr;
  invited_ = 0;
  LogInfo("elastic run ", options_.run,
          " goes on with those that are left: ", group_->status().ToString());
  ASSIGN_OR_RETURN(group_, group_->Shrink().Await(kNoLimit));
  return absl::OkStatus();
}

int64_t ElasticTraining::DraftInvitation() {
  invitation_.clear();
  if (group_->rank() != 0) return 0;
  ElasticInvitation invitation{
      .group = absl::StrCat(options_.run, "@", agent_.self().incarnation, ".",
                            ++invitations_),
      .members = group_->members()};
  const size_t before = invitation.members.size();
  for (const rpc::WorkerInfo& worker :
       handlers_->Joiners(options_.run, agent_)) {
    if (static_cast<int>(invitation.members.size()) < options_.max_members)
      invitation.members.push_back(worker);
  }
  if (invitation.members.size() > before) invitation_ = Encoded(invitation);
  return static_cast<int64_t>(invitation_.size());
}

absl::Status ElasticTraining::Grow() {
  const int64_t length = std::exchange(invited_, 0);
  ASSIGN_OR_RETURN(std::string text,
                   BroadcastText(*group_, 0, invitation_, length));
  ASSIGN_OR_RETURN(const auto invitation,
                   Decoded<ElasticInvitation>(std::move(text)));
  if (group_->rank() == 0) handlers_->Answer(options_.run, invitation);
  auto larger = MakeGroup(invitation.group, invitation.members);
  if (larger.ok()) {
    parallel_ = nullptr;
    group_ = *std::move(larger);
    return absl::OkStatus();
  }
  // A newcomer is already gone, or a member's loss will be known soon.
  LogInfo("elastic run ", options_.run,
          " stays as it is: ", larger.status().ToString());
  return absl::OkStatus();
}

absl::Status ElasticTraining::Agree() {
  const Tensor own = Tensor::From<int64_t>({place_.step});
  const Tensor all = Tensor::Zeros({group_->size()}, {.dtype = DType::kI64});
  const Tensor begun = Tensor::From<int64_t>({begun_ ? 1 : 0});
  RETURN_IF_ERROR(group_->AllGather(all, own).Await(kNoLimit));
  RETURN_IF_ERROR(group_->AllReduce(begun).Await(kNoLimit));
  begun_ = begun.data<int64_t>()[0] > 0;
  const std::vector<int64_t> steps = all.ToVector<int64_t>();
  const auto most = std::max_element(steps.begin(), steps.end());
  if (*most < 0) {
    return absl::DataLossError(absl::StrCat(
        "elastic run ", options_.run, ": nobody is left who has its state"));
  }
  const auto behind = [&](int64_t step) { return step < *most; };
  if (std::any_of(steps.begin(), steps.end(), behind))
    RETURN_IF_ERROR(TakeState(static_cast<int>(most - steps.begin())));
  // Except at the beginning of a run, all members already have what it
  // broadcasts.
  ASSIGN_OR_RETURN(parallel_,
                   DataParallel::Make(module_, group_, options_.data_parallel));
  handlers_->Follow(options_.run, group_->members().front().name);
  return absl::OkStatus();
}

// Changes nothing here unless all of it has arrived.
absl::Status ElasticTraining::TakeState(int from) {
  const bool gives = group_->rank() == from;
  nn::StateMap state;
  Announcement announced{.last = last_};
  if (gives) {
    state = WithPrefix(kModule, module_.StateDict());
    state.merge(WithPrefix(kOptimizer, optimizer_.ExportState()));
    for (auto& [name, tensor] : state) {
      tensor = tensor.Contiguous();
      const auto& dims = tensor.shape().dims();
      announced.tensors.push_back(
          {name, tensor.dtype(), {dims.begin(), dims.end()}});
    }
  }
  const std::string text = Encoded(announced);
  const Tensor counts =
      Tensor::From<int64_t>({place_.step, place_.epoch, place_.sample,
                             static_cast<int64_t>(text.size())});
  RETURN_IF_ERROR(group_->Broadcast(counts, from).Await(kNoLimit));
  const std::vector<int64_t> given = counts.ToVector<int64_t>();
  ASSIGN_OR_RETURN(std::string told,
                   BroadcastText(*group_, from, text, given[3]));
  ASSIGN_OR_RETURN(announced, Decoded<Announcement>(std::move(told)));
  for (const Announced& each : announced.tensors) {
    Tensor& tensor = state[each.name];
    if (!gives)
      tensor = Tensor::Empty(Shape(Dims(each.dims.begin(), each.dims.end())),
                             {.dtype = each.dtype});
    if (tensor.numel() > 0)
      RETURN_IF_ERROR(group_->Broadcast(tensor, from).Await(kNoLimit));
  }
  if (place_.step == given[0]) return absl::OkStatus();
  RETURN_IF_ERROR(module_.LoadStateDict(OfPrefix(kModule, state)));
  RETURN_IF_ERROR(optimizer_.ImportState(OfPrefix(kOptimizer, state)));
  place_ = {given[0], given[1], given[2]};
  last_ = announced.last;
  return absl::OkStatus();
}

}  // namespace baton::dist
