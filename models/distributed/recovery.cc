// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/recovery.h"

#include <algorithm>
#include <atomic>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/call_options.h"

namespace baton::dist {
namespace {

using Clock = PipelineMembers::Clock;

// Recovery gives up after kMostUnexplained consecutive tries that found no lost
// worker and failed with errors that no loss explains. After kFruitlessToTell
// tries that found no lost worker it logs a warning.
constexpr int kMostUnexplained = 3, kFruitlessToTell = 3;
// The pause before the next try if the last one found no lost worker; it
// doubles up to the limit and ends early when an event of a worker arrives.
constexpr std::chrono::milliseconds kFirstPause{10}, kLongestPause{1'000};
// A worker that is leaving keeps its modules until it has left: how long the
// next try waits for that.
constexpr std::chrono::milliseconds kLeaving{500};
constexpr char kPart[] = "optimizer";
constexpr char kNotRecovered[] = "the pipeline could not be recovered";

// Returns true if a worker refused the call because it is leaving.
bool IsOfALeaving(const absl::Status& why) {
  const auto error = rpc::CallErrorOf(why);
  return absl::IsFailedPrecondition(why) && error && error->retryable;
}

// Returns true for errors of a link, of an aborted call, or of a worker that is
// leaving: another try may succeed.
bool MayBeOfALoss(const absl::Status& why) {
  return IsOfALeaving(why) || absl::IsUnavailable(why) ||
         absl::IsAborted(why) || absl::IsCancelled(why) ||
         absl::IsDeadlineExceeded(why);
}

std::chrono::milliseconds PauseAfter(int fruitless) {
  auto pause = kFirstPause;
  for (int i = 1; i < fruitless && pause < kLongestPause; ++i) pause *= 2;
  return std::min(pause, kLongestPause);
}

double Elapsed(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Adds its lifetime to a field of a record.
class Timed {
 public:
  explicit Timed(double& seconds) : seconds_(seconds) {}
  ~Timed() { seconds_ += Elapsed(begin_); }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  double& seconds_;
  const Clock::time_point begin_ = Clock::now();
};

// Returns each module's place; pipelines number workers by their first module.
std::vector<size_t> PlacesOf(const std::vector<RecoveredModule>& modules) {
  absl::flat_hash_map<std::string, size_t> places;
  std::vector<size_t> of_module;
  for (const RecoveredModule& module : modules) {
    const size_t next = places.size();
    of_module.push_back(
        places.try_emplace(module.stage().owner().name, next).first->second);
  }
  return of_module;
}

std::vector<rpc::WorkerInfo> WorkersOf(
    const std::vector<RecoveredModule>& modules) {
  std::vector<rpc::WorkerInfo> workers;
  const std::vector<size_t> places = PlacesOf(modules);
  for (size_t i = 0; i < modules.size(); ++i) {
    if (places[i] == workers.size())
      workers.push_back(modules[i].stage().owner());
  }
  return workers;
}

PipelineOptions OnALine(PipelineOptions options, const rpc::Agent& agent) {
  static std::atomic<uint64_t> last = 0;
  options.line = absl::StrCat("pipeline ", ++last, " of ", agent.self().name,
                              " ", agent.self().incarnation);
  return options;
}

absl::Status CheckOptions(const PipelineOptions& options,
                          const RecoveryOptions& recovery) {
  if (recovery.most_redone < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("most_redone: ", recovery.most_redone, " is less than 1"));
  }
  if (options.loss.kind() != Loss::kOwn && !options.loss_scale.has_value())
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      "a pipeline with a loss module of its own or a loss scale is not "
      "recovered: use checkpoints");
}

}  // namespace

std::string Recovery::ToString() const {
  return absl::StrCat(
      lost.empty() ? "links broke"
                   : absl::StrCat(absl::StrJoin(lost, ", "), " lost, ",
                                  absl::StrJoin(successors, ", "), " instead"),
      ": ", redone, " steps done again after step ", step,
      absl::StrFormat(" in %.0f ms (detect %.0f, decide %.0f, make %.0f, load "
                      "%.0f, redo %.0f; tries: %d)",
                      1e3 * (detect + decide + make + load + redo),
                      1e3 * detect, 1e3 * decide, 1e3 * make, 1e3 * load,
                      1e3 * redo, tries));
}

absl::StatusOr<std::unique_ptr<RecoverablePipeline>> RecoverablePipeline::Make(
    rpc::Agent& agent, const PipelineOptions& options,
    const RecoveryOptions& recovery,
    const std::vector<RecoveredModule>& modules,
    const RecoveredOptimizer& optimizer) {
  RETURN_IF_ERROR(CheckOptions(options, recovery));
  std::unique_ptr<RecoverablePipeline> made(
      new RecoverablePipeline(agent, options, recovery, modules, optimizer));
  if (recovery.journal.empty()) {
    RETURN_IF_ERROR(made->members_.MakeStores(made->Claim(false)));
  } else {
    RETURN_IF_ERROR(made->OpenJournal());
  }
  RETURN_IF_ERROR(made->MakePipeline());
  RETURN_IF_ERROR(made->TakeUp());
  return made;
}

RecoverablePipeline::RecoverablePipeline(
    rpc::Agent& agent, const PipelineOptions& options,
    const RecoveryOptions& recovery,
    const std::vector<RecoveredModule>& modules,
    const RecoveredOptimizer& optimizer)
    : agent_(agent),
      options_(OnALine(options, agent)),
      recovery_(recovery),
      modules_(modules),
      optimizer_(optimizer),
      place_of_module_(PlacesOf(modules)),
      members_(agent, WorkersOf(modules)) {}

absl::Status RecoverablePipeline::Recover(const absl::Status& cause,
                                          const Rest& rest) {
  const Clock::time_point begin = Clock::now();
  LogInfo("recovery: ", cause.ToString());
  // The recovery repeats these steps, whatever their results would have been.
  for (auto i = static_cast<size_t>(LastDone() + 1 - next_);
       i < under_way_.size(); ++i)
    under_way_[i] = ReadyFuture<Pipeline::StepResult>(cause);
  absl::Status why = cause;
  Recovery record;
  goes_back_ = false;
  int fruitless = 0, unexplained = 0;
  size_t lost = 0;
  while (Clock::now() - begin < recovery_.timeout) {
    ++record.tries;
    if (std::optional<absl::Status> over = Try(cause, rest, why, record)) {
      if (!over->ok()) return *std::move(over);
      ++recoveries_;
      LogWarning("recovery: ", record.ToString());
      if (recovery_.on_recovery) recovery_.on_recovery(record);
      return absl::OkStatus();
    }
    LogInfo("recovery: try ", record.tries, ": ", why.ToString());
    if (absl::IsPermissionDenied(why)) break;
    const bool leaving = IsOfALeaving(why);
    const bool gets_on = leaving || record.lost.size() > lost;
    fruitless = gets_on ? 0 : fruitless + 1;
    unexplained = gets_on || MayBeOfALoss(why) ? 0 : unexplained + 1;
    lost = record.lost.size();
    if (unexplained == kMostUnexplained) break;
    if (fruitless == kFruitlessToTell) {
      LogWarning("recovery: tried ", record.tries, " times in vain (",
                 why.ToString(), "); tries go on for ",
                 recovery_.timeout.count() / 1000, " s at most");
    }
    if (leaving || fruitless > 0) {
      members_.news()
          .Next()
          .Await(leaving ? kLeaving : PauseAfter(fruitless))
          .IgnoreError();
    }
  }
  return status_ = Annotate(
             why, absl::StrCat(
                      kNotRecovered, " in ", record.tries,
                      absl::StrFormat(" tries and %.0f s", Elapsed(begin))));
}

std::optional<absl::Status> RecoverablePipeline::Try(const absl::Status& cause,
                                                     const Rest& rest,
                                                     absl::Status& why,
                                                     Recovery& record) {
  const auto again = [&](const absl::Status& status) {
    why = status;
    return std::nullopt;
  };
  keepers_.clear();
  safe_.reset();
  pipeline_.reset();
  ++options_.epoch;
  if (const auto decided = Decide(record); !decided.ok())
    return status_ = Annotate(decided, kNotRecovered);
  const auto found = FindStates(record);
  if (!found.ok()) return again(found.status());
  const std::optional<PipelineMembers::Kept>& kept = *found;
  // Once a try has begun to load a checkpoint, workers may hold its states, so
  // the next try loads it again.
  goes_back_ = goes_back_ || !kept;
  if (goes_back_ && checkpoints_ == nullptr) {
    status_ = absl::DataLossError(absl::StrCat(
        "lost together with the worker that kept its state: ",
        absl::StrJoin(record.lost, ", "), "; there is no checkpoint"));
    return status_;
  }
  if (const auto made = MakeAll(record); !made.ok()) return again(made);
  if (goes_back_) {
    const absl::Status back = GoBackToCheckpoint();
    if (absl::IsDataLoss(back)) return back;
    return again(back);
  }
  {
    const Timed timed(record.load);
    const auto loaded = Load(kept->step, kept->stores);
    if (!loaded.ok()) return again(loaded);
  }
  record.step = steps_ - (next_ - 1 - kept->step);
  // This error is of the model or of the call, so it would occur again.
  if (record.lost.empty() && !MayBeOfALoss(cause)) {
    const auto back = Redo(kept->step, LastDone(), record);
    if (!back.ok()) return again(back);
    return cause;
  }
  auto redone =
      Redo(kept->step, batches_.empty() ? 0 : batches_.back().number, record);
  if (redone.ok() && rest) redone = rest();
  if (!redone.ok()) return again(redone);
  return absl::OkStatus();
}

absl::Status RecoverablePipeline::Decide(Recovery& record) {
  const Clock::time_point begin = Clock::now();
  ASSIGN_OR_RETURN(
      const std::vector<size_t> lost,
      members_.FindLost(options_.epoch, begin + recovery_.successor_timeout));
  Clock::time_point sign = begin;
  for (const size_t place : lost) {
    const std::string& name = members_.all()[place].worker.name;
    if (record.tries == 1)
      sign = std::min(sign, members_.news().Broke(name).value_or(begin));
    record.lost.push_back(name);
  }
  record.detect += Elapsed(sign);
  const Timed timed(record.decide);
  RETURN_IF_ERROR(
      members_.Replace(lost, Clock::now() + recovery_.successor_timeout));
  for (const size_t place : lost)
    record.successors.push_back(members_.all()[place].worker.name);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<PipelineMembers::Kept>>
RecoverablePipeline::FindStates(const Recovery& record) {
  // Workers may have given this trainer up but still keep its states; or
  // another trainer may have claimed them.
  const bool takes_up = journal_.has_value() && !record.lost.empty();
  const Clock::time_point deadline = MembersDeadline();
  // States before this number are of no use, because the steps from them on are
  // not known here.
  const int64_t known = batches_.empty() ? next_ : batches_.front().number;
  for (;;) {
    if (takes_up) RETURN_IF_ERROR(members_.TakeUpAgain(Claim(true), deadline));
    auto kept = members_.NewestKept(LastDone());
    if (kept && kept->step < known - 1) kept.reset();
    if (kept || !takes_up || !members_.AwaitGivenUp(options_.line, deadline))
      return kept;
  }
}

absl::Status RecoverablePipeline::MakeAll(Recovery& record) {
  const Timed timed(record.make);
  RETURN_IF_ERROR(MakeModules());
  optimizer_.make_anew();
  return MakePipeline();
}

absl::Status RecoverablePipeline::MakeModules() {
  RETURN_IF_ERROR(members_.MakeStores(Claim(false)));
  std::vector<PipelineMembers::Member>& members = members_.all();
  std::vector<Future<void>> making;
  for (size_t i = 0; i < modules_.size(); ++i) {
    const PipelineMembers::Member& member = members[place_of_module_[i]];
    if (!member.has_modules)
      making.push_back(modules_[i].MakeAt(member.worker));
  }
  RETURN_IF_ERROR(WaitAll(making).Await(kNoLimit));
  for (PipelineMembers::Member& member : members) member.has_modules = true;
  return absl::OkStatus();
}

absl::Status RecoverablePipeline::MakePipeline() {
  ASSIGN_OR_RETURN(hosts_, optimizer_.hosts().Await(kNoLimit));
  std::vector<StageModule> stages;
  for (const RecoveredModule& module : modules_)
    stages.push_back(module.stage());
  ASSIGN_OR_RETURN(pipeline_, Pipeline::Make(agent_, options_, stages));
  RETURN_IF_ERROR(MakeKeepers());
  GuardCheckpoints();
  return checkpoints_ == nullptr ? absl::OkStatus() : checkpoints_->MakeAnew();
}

absl::Status RecoverablePipeline::MakeKeepers() {
  std::vector<Future<RRef<HeldModule>>> holding;
  for (const RecoveredModule& module : modules_)
    holding.push_back(module.saved().Hold(agent_));
  ASSIGN_OR_RETURN(const auto held, WaitAll(holding).Await(kNoLimit));
  const std::vector<PipelineMembers::Member>& members = members_.all();
  std::vector<Future<RRef<StateKeeper>>> making;
  for (size_t place = 0; place < members.size(); ++place) {
    KeeperSpec spec;
    spec.epoch = options_.epoch;
    spec.place = static_cast<int32_t>(place);
    spec.own = members[place].store;
    spec.buddy = members_.BuddyOf(place);
    for (size_t i = 0; i < modules_.size(); ++i) {
      if (place_of_module_[i] == place)
        spec.modules.push_back({absl::StrCat("stage", i, "."), held[i]});
    }
    for (const RRef<OptimizerHost>& host : hosts_) {
      if (host.owner().name == members[place].worker.name)
        spec.optimizers.push_back({kPart, host});
    }
    making.push_back(
        rpc::Create<StateKeeper>(agent_, members[place].worker, spec));
  }
  ASSIGN_OR_RETURN(keepers_, WaitAll(making).Await(kNoLimit));
  return CatchErrors([&] { pipeline_->KeepStatesBy(keepers_); });
}

absl::Status RecoverablePipeline::Load(
    int64_t step, const std::vector<RRef<StateStore>>& from) {
  const rpc::CallOptions options{.timeout = recovery_.timeout};
  std::vector<Future<void>> loading;
  for (size_t place = 0; place < keepers_.size(); ++place) {
    loading.push_back(keepers_[place].Async<&StateKeeper::Begin>(
        options, step, from.empty() ? RRef<StateStore>() : from[place]));
  }
  RETURN_IF_ERROR(WaitAll(loading).Await(kNoLimit));
  kept_ = last_safe_ = step;
  safe_ = Safe(step);
  return absl::OkStatus();
}

absl::Status RecoverablePipeline::Redo(int64_t after, int64_t last,
                                       Recovery& record) {
  const Timed timed(record.redo);
  record.redone = 0;
  for (const Batch& batch : batches_) {
    if (batch.number <= after || batch.number > last) continue;
    auto result = Run(batch).Await(kNoLimit);
    RETURN_IF_ERROR(result.status());
    if (batch.number == kept_) safe_ = Safe(kept_);
    if (batch.number >= next_) {
      under_way_[static_cast<size_t>(batch.number - next_)] =
          ReadyFuture<Pipeline::StepResult>(*std::move(result));
    }
    ++record.redone;
  }
  // Later states are kept only once these are safe.
  return kept_ > after ? absl::OkStatus() : safe_->Await(kNoLimit);
}

}  // namespace baton::dist
