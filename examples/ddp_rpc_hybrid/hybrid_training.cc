// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/ddp_rpc_hybrid/hybrid_training.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/ops/arithmetic.h"
#include "core/status.h"
#include "examples/support/pushing.h"

namespace baton::examples {
namespace {

using Clock = std::chrono::steady_clock;

// Newcomers and lost servers are looked for at this interval.
constexpr std::chrono::milliseconds kLook{100};

rpc::CallOptions Patient() { return {.timeout = kNoLimit}; }

// Returns a future that fails once one of the workers is lost or has left, and
// names it. Otherwise it never becomes ready.
Future<void> LossOf(rpc::Agent& agent,
                    const std::vector<std::string>& workers) {
  const Promise<void> lost;
  agent.WatchMembers([lost, workers](const rpc::MemberEvent& event) {
    if (event.kind != rpc::MemberEvent::Kind::kLost &&
        event.kind != rpc::MemberEvent::Kind::kLeft)
      return;
    for (const std::string& worker : workers) {
      if (worker != event.worker.name) continue;
      lost.Set(absl::UnavailableError(absl::StrCat(
          "server ", worker, " is lost: ", event.cause.message())));
    }
  });
  return lost.future();
}

}  // namespace

void HybridTraining::Inbox::Put(Told told) {
  const MutexLock lock(mutex_);
  told_.push_back(std::move(told));
  changed_.NotifyAll();
}

std::optional<HybridTraining::Told> HybridTraining::Inbox::Take(
    Clock::time_point deadline) {
  const MutexLock lock(mutex_);
  while (told_.empty() && changed_.WaitUntil(mutex_, deadline)) {
  }
  if (told_.empty()) return std::nullopt;
  Told first = std::move(told_.front());
  told_.pop_front();
  return first;
}

absl::StatusOr<std::unique_ptr<HybridTraining>> HybridTraining::Make(
    rpc::Agent& agent, const Crew& crew, const Options& options) {
  std::unique_ptr<HybridTraining> made(
      new HybridTraining(agent, crew, options));
  ASSIGN_OR_RETURN(
      made->servers_,
      dist::ParameterServers::Make(agent, crew.servers, options.servers, {}));
  return made;
}

HybridTraining::HybridTraining(rpc::Agent& agent, const Crew& crew,
                               const Options& options)
    // With backups, a lost server is replaced by the one that backs it up.
    : server_lost_(LossOf(agent, options.servers.backups
                                     ? std::vector<std::string>()
                                     : crew.servers)),
      trainers_(
          agent,
          [this, &agent,
           task = options.task](const std::string& worker) mutable {
            task.begun = next_ > 0;
            return rpc::Create<HybridTrainer>(agent, worker, task,
                                              servers_->directory(), ranks_++);
          },
          options.most_trainers, crew.servers) {}

absl::Status HybridTraining::TrainUntil(int64_t steps, const OnStep& on_step) {
  begun_.clear();
  someone_has_ended_ = false;
  Clock::time_point look = Clock::now();
  do {
    if (Clock::now() >= look) {
      RETURN_IF_ERROR(BeginAll());
      look = Clock::now() + kLook;
    }
    const std::optional<Told> told = inbox_->Take(look);
    if (server_lost_.ready()) return server_lost_.Await();
    if (told.has_value()) RETURN_IF_ERROR(OnTold(*told, steps, on_step));
  } while (at_work_ > 0);
  if (!someone_has_ended_) {
    return Annotate(trainers_.last_loss(),
                    "no trainer is left that has the model");
  }
  PassOn(on_step);
  return absl::OkStatus();
}

absl::Status HybridTraining::BeginAll() {
  ASSIGN_OR_RETURN(const auto present,
                   trainers_.Muster(Trainers::Wait::kForOne));
  for (const Trainers::Present& trainer : present) {
    if (!begun_.insert(trainer.worker.incarnation).second) continue;
    ++at_work_;
    BeginStep(trainer);
  }
  return absl::OkStatus();
}

void HybridTraining::BeginStep(const Trainers::Present& trainer) {
  trainer.rref.Async<&HybridTrainer::Step>(Patient()).OnReady(
      [inbox = inbox_, trainer](const absl::StatusOr<HybridStep>& step) {
        inbox->Put({.trainer = trainer, .step = step});
      });
}

absl::Status HybridTraining::OnTold(const Told& told, int64_t steps,
                                    const OnStep& on_step) {
  const auto& [trainer, step] = told;
  if (step.ok()) {
    RETURN_IF_ERROR(Merge(*step, on_step));
    if (next_ < steps) {
      BeginStep(trainer);
      return absl::OkStatus();
    }
    someone_has_ended_ = true;
  } else if (IsLoss(step.status())) {
    trainers_.Drop(trainer.worker, step.status());
  } else {
    return step.status();
  }
  --at_work_;
  return absl::OkStatus();
}

absl::Status HybridTraining::Merge(const HybridStep& step,
                                   const OnStep& on_step) {
  if (step.step >= next_) {
    PassOn(on_step);
    told_ = step;
    next_ = step.step + 1;
    return absl::OkStatus();
  }
  if (step.step + 1 < next_) {
    return absl::DataLossError(absl::StrCat(
        "all trainers that had the model of step ", next_, " are lost"));
  }
  if (!told_.has_value()) return absl::OkStatus();
  told_->seconds = std::max(told_->seconds, step.seconds);
  told_->waited_s = std::max(told_->waited_s, step.waited_s);
  return absl::OkStatus();
}

void HybridTraining::PassOn(const OnStep& on_step) {
  if (!told_.has_value()) return;
  on_step(*told_);
  told_.reset();
}

template <typename R>
absl::StatusOr<std::vector<R>> HybridTraining::OfEach(
    const std::function<Future<R>(const RRef<HybridTrainer>& trainer, int64_t i,
                                  int64_t n)>& call) {
  ASSIGN_OR_RETURN(const auto present,
                   trainers_.Muster(Trainers::Wait::kForOne));
  std::vector<Future<std::optional<R>>> calls;
  for (const Trainers::Present& trainer : present) {
    calls.push_back(
        UnlessLost(call(trainer.rref, static_cast<int64_t>(calls.size()),
                        static_cast<int64_t>(present.size()))));
  }
  const Future<std::vector<std::optional<R>>> all = WaitAll(calls);
  while (!all.ready() && !server_lost_.ready()) (void)all.Await(kLook);
  if (server_lost_.ready()) return server_lost_.Await();
  ASSIGN_OR_RETURN(const std::vector<std::optional<R>> given, all.Await());
  return ThoseThere(given);
}

absl::StatusOr<double> HybridTraining::Perplexity() {
  ASSIGN_OR_RETURN(
      const std::vector<double> all,
      OfEach<double>(
          [](const RRef<HybridTrainer>& trainer, int64_t i, int64_t n) {
            return trainer.Async<&HybridTrainer::Perplexity>(Patient(), i, n);
          }));
  double sum = 0;
  for (const double perplexity : all) sum += std::log(perplexity);
  return std::exp(sum / static_cast<double>(all.size()));
}

absl::Status HybridTraining::CheckEqual() {
  ASSIGN_OR_RETURN(
      const std::vector<std::vector<Tensor>> all,
      OfEach<std::vector<Tensor>>(
          [](const RRef<HybridTrainer>& trainer, int64_t, int64_t) {
            return trainer.Async<&HybridTrainer::Parameters>(Patient());
          }));
  for (const std::vector<Tensor>& one : all) {
    for (size_t i = 0; i < one.size(); ++i) {
      if (!ops::BitEqual(one[i], all.front()[i]))
        return absl::InternalError("the trainers' parameters differ");
    }
  }
  return absl::OkStatus();
}

}  // namespace baton::examples
