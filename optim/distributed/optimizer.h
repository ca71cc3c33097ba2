// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "autograd/distributed/context.h"
#include "autograd/distributed/context_state.h"
#include "autograd/distributed/parameter_list.h"
#include "core/mutex.h"
#include "optim/distributed/local_optimizer.h"
#include "optim/distributed/shares.h"
#include "optim/grad_scaler.h"

namespace baton::dist {

// Every worker's registry needs this for each kind of optimizer in use.
template <typename O>
void RegisterOptimizer(rpc::Registry& registry) {
  registry.Add<LocalOptimizer<O>>();
  registry.AddFunction<&HostOf<O>>();
}

// Sources whose parameters are stepped with their own options.
template <typename Options>
struct SourceGroup {
  std::vector<ParameterSource> sources;
  Options options;
};

// Steps parameters at their workers by the gradients of a context. O is
// optim::Sgd, optim::Adam or another optim::RuleOptimizer.
//
//   dist::Optimizer<optim::Sgd> sgd(agent, {.lr = 0.1}, {front, back});
//   ...
//   RETURN_IF_ERROR(ctx.Backward(loss));
//   RETURN_IF_ERROR(sgd.Step(ctx));
//
// Parameters may be in groups, by source and by name:
//
//   const dist::ParameterSource front(front_module), back(back_module);
//   dist::Optimizer<optim::AdamW> adam(
//       agent, {{{front.Only({"bias"}), back.Only({"bias"})},
//                {.lr = 0.1, .weight_decay = 0}},
//               {{front.Except({"bias"}), back.Except({"bias"})},
//                {.lr = 0.1}}});
//
// Calls end by the time limit of `options`, or else the agent's, counted from
// when the local optimizers exist; Await needs no limit of its own. A step also
// runs, and waits for, the work that modules have requested
// (ContextState::OnStep), such as the push of rows by a dist::Embedding, here
// and at the workers of these parameters. These rows are clipped and unscaled
// as the parameters are, and their learning rate changes by the factor by which
// that of the first group does. Parameters without a gradient in the
// context keep their value and state. A parameter in several sources is stepped
// once, in its first group. Steps at one worker, of whatever trainers, run one
// after the other, and exclude forwards of these parameters' modules and
// backwards. Must not outlive the agent. Thread-safe.
template <typename O>
class Optimizer {
 public:
  using Options = typename O::Options;
  using Groups = std::vector<SourceGroup<Options>>;

  // Begins to make the local optimizers; errors are returned by Ready and by
  // every Step. Sources are modules, and RRefs of modules or of Variables.
  Optimizer(rpc::Agent& agent, const Options& options,
            const std::vector<ParameterSource>& sources)
      : Optimizer(agent, Groups{{sources, options}}) {}
  Optimizer(rpc::Agent& agent, const Groups& groups)
      : agent_(agent),
        groups_(groups),
        pace_(std::make_shared<Pace>(RatesOf(groups))),
        ready_(MakeLocals(agent, groups)) {}

  // Makes the local optimizers anew where the sources' objects are now
  // (RRef::MoveTo). Keeps steps and rates but no other state. Do not call it
  // while a step is in progress.
  void MakeAnew() {
    const Future<Locals> made = MakeLocals(agent_, groups_);
    const MutexLock lock(mutex_);
    ready_ = made;
  }

  Future<void> Ready() const {
    return ready().Then([](const Locals&) {});
  }

  absl::Status Step(const Context& ctx, const rpc::CallOptions& options = {}) {
    return StepAsync(ctx, options).Await(kNoLimit);
  }
  // A limit on the norm of gradients, or a loss scale, costs an additional
  // round trip.
  Future<void> StepAsync(const Context& ctx,
                         const rpc::CallOptions& options = {}) {
    StepRequest request = NextStep();
    if (absl::Status status = request.Check(); !status.ok())
      return ReadyFuture<void>(status);
    request.loss_scale = loss_scale();
    // The context may be gone by the time that the locals are ready.
    const auto context =
        std::dynamic_pointer_cast<ContextState>(ctx.call_scope());
    if (request.NeedsNorm()) {
      return ready().Then([context, options, request,
                           pace = pace_](const Locals& locals) {
        return NormOf(locals, options, context)
            .Then([locals, options, context, request, pace](double norm) {
              const StepRequest known = request.WithNorm(norm);
              pace->AdaptScale(known);
              const Future<void> others =
                  context->StepOthers(known.ForOthers());
              return StepAll(locals, options, context, known).Then([others] {
                return others;
              });
            });
      });
    }
    const Future<void> others = context->StepOthers(request.ForOthers());
    return ready()
        .Then([context, options, request](const Locals& locals) {
          return StepAll(locals, options, context, request);
        })
        .Then([others] { return others; });
  }

  // For callers, such as a pipeline, that make workers step by gradients which
  // are already there. Hosts returns what steps the parameters of each worker
  // that has any, once it exists. NextStep returns the settings for one step
  // and advances the schedules. BackByOne returns what sets them back again if
  // the step that follows fails; it does nothing once rates were loaded, and
  // may be called from any thread, also when the optimizer is gone.
  Future<std::vector<RRef<OptimizerHost>>> Hosts() const {
    return ready().Then([](const Locals& locals) {
      std::vector<RRef<OptimizerHost>> hosts;
      for (const Local& local : locals) hosts.push_back(local.host);
      return hosts;
    });
  }
  StepRequest NextStep() {
    const MutexLock lock(pace_->mutex);
    StepRequest request{.rates = pace_->rates.now(),
                        .clip_norm = pace_->clip.norm,
                        .clip_value = pace_->clip.value,
                        .rate_factor = pace_->rates.factor()};
    pace_->rates.Advance();
    return request;
  }
  std::function<void()> BackByOne() const {
    const MutexLock lock(pace_->mutex);
    return [pace = pace_, loaded = pace_->loaded] {
      const MutexLock held(pace->mutex);
      if (pace->loaded == loaded) pace->rates.GoBack();
    };
  }

  // Returns the norm of the gradients in the context over all workers, in one
  // round trip.
  absl::StatusOr<double> GradNorm(const Context& ctx,
                                  const rpc::CallOptions& options = {}) const {
    return ready()
        .Then([context =
                   std::dynamic_pointer_cast<ContextState>(ctx.call_scope()),
               options](const Locals& locals) {
          return NormOf(locals, options, context);
        })
        .Await(kNoLimit);
  }

  // These apply from the next Step on and correspond to those of
  // optim::Optimizer.
  double lr(size_t group = 0) const {
    const MutexLock lock(pace_->mutex);
    return pace_->rates.now().at(group);
  }
  void set_lr(double lr) {
    const MutexLock lock(pace_->mutex);
    for (size_t group = 0; group < pace_->rates.groups(); ++group)
      pace_->rates.Set(group, lr);
  }
  void set_lr(size_t group, double lr) {
    const MutexLock lock(pace_->mutex);
    pace_->rates.Set(group, lr);
  }
  void set_schedule(optim::Schedule schedule) {
    const MutexLock lock(pace_->mutex);
    pace_->rates.Follow(std::move(schedule));
  }
  // Step returns an error if a limit is negative or both limits are set.
  void set_clip(const optim::Clip& clip) {
    const MutexLock lock(pace_->mutex);
    pace_->clip = clip;
  }

  // Scales losses of f16 models (optim::GradScaler): multiply each step's loss
  // by loss_scale(), by which Step divides the gradients. If one is not finite,
  // at any worker, no worker steps. Not for pipelines, which have a scale of
  // their own (PipelineOptions::loss_scale). Throws Error for options out of
  // range.
  void set_loss_scale(const optim::GradScalerOptions& options) {
    const MutexLock lock(pace_->mutex);
    pace_->loss_scale.emplace(options);
  }
  // Returns 0 if there is none. Steps change it.
  double loss_scale() const {
    const MutexLock lock(pace_->mutex);
    return pace_->loss_scale ? pace_->loss_scale->value() : 0;
  }

  // Return or replace the trainer's part of the state: steps and rates.
  optim::StateDict ExportRates() const {
    const MutexLock lock(pace_->mutex);
    return pace_->rates.Export();
  }
  absl::Status ImportRates(const optim::StateDict& state) {
    const MutexLock lock(pace_->mutex);
    ++pace_->loaded;
    return pace_->rates.Import(state);
  }

  // Returns copies of all state: "<source>.<parameter>.<name>" (see
  // ParameterSource::Named), and the steps and rates. The result fits the same
  // parameters wherever they are placed.
  absl::StatusOr<optim::StateDict> State(
      const rpc::CallOptions& options = {}) const {
    std::vector<optim::StateDict> states = {ExportRates()};
    ASSIGN_OR_RETURN(
        const std::vector<optim::StateDict> of_workers,
        ready()
            .Then([options](const Locals& locals) {
              return All<optim::StateDict>(locals, [&](const Local& local) {
                return local.rref.template Async<&LocalOptimizer<O>::State>(
                    options);
              });
            })
            .Await(kNoLimit));
    states.insert(states.end(), of_workers.begin(), of_workers.end());
    return MergeStates(states);
  }

  // Returns InvalidArgument for an entry that fits no parameter, or if it does
  // not fit at a worker; other workers may have loaded their part by then.
  absl::Status LoadState(const optim::StateDict& state,
                         const rpc::CallOptions& options = {}) {
    optim::StateDict of_parameters = state;
    std::erase_if(of_parameters, [](const auto& entry) {
      return optim::Rates::IsKey(entry.first);
    });
    RETURN_IF_ERROR(
        ready()
            .Then([of_parameters, options](const Locals& locals) {
              return All<std::vector<std::string>>(
                         locals,
                         [&](const Local& local) {
                           return local.rref
                               .template Async<&LocalOptimizer<O>::Names>(
                                   options);
                         })
                  .Then([=](const std::vector<std::vector<std::string>>& names)
                            -> Future<void> {
                    auto parts = SplitState(of_parameters, names);
                    if (!parts.ok()) return ReadyFuture<void>(parts.status());
                    return LoadParts(locals, options, *parts);
                  });
            })
            .Await(kNoLimit));
    return ImportRates(state);
  }

 private:
  struct Local {
    RRef<LocalOptimizer<O>> rref;
    RRef<OptimizerHost> host;
    bool is_here;
  };
  // The trainer's part of the state. Steps under way keep it.
  struct Pace {
    explicit Pace(const std::vector<double>& base) : rates(base) {}
    void AdaptScale(const StepRequest& step) {
      const MutexLock lock(mutex);
      if (step.loss_scale != 0) loss_scale->Adapt(step.skip);
    }
    Mutex mutex;
    optim::Rates rates ABSL_GUARDED_BY(mutex);
    optim::Clip clip ABSL_GUARDED_BY(mutex);
    std::optional<optim::LossScale> loss_scale ABSL_GUARDED_BY(mutex);
    uint64_t loaded ABSL_GUARDED_BY(mutex) = 0;  // how often rates were
  };
  using Locals = std::vector<Local>;
  using ContextPtr = std::shared_ptr<ContextState>;

  static std::vector<double> RatesOf(const Groups& groups) {
    std::vector<double> rates;
    for (const SourceGroup<Options>& group : groups)
      rates.push_back(group.options.lr);
    return rates;
  }

  static Future<Locals> MakeLocals(rpc::Agent& agent, const Groups& groups) {
    std::vector<Options> options;
    std::vector<std::vector<ParameterSource>> sources;
    for (const SourceGroup<Options>& group : groups) {
      options.push_back(group.options);
      sources.push_back(group.sources);
    }
    std::vector<Future<Local>> locals;
    for (const WorkerShares& worker : GroupByOwner(agent, sources)) {
      locals.push_back(WaitAll(worker.lists)
                           .Then([&agent, options, worker](
                                     const std::vector<RRef<ParameterList>>&) {
                             return MakeLocal(agent, options, worker);
                           }));
    }
    return WaitAll(locals);
  }

  static Future<Local> MakeLocal(rpc::Agent& agent,
                                 const std::vector<Options>& options,
                                 const WorkerShares& worker) {
    const std::string rule = rpc::internal::TypeName<O>();
    return rpc::OrNameMissing(
               rpc::Create<LocalOptimizer<O>>(agent, worker.owner, options,
                                              worker.shares),
               rule,
               absl::StrCat("join by dist::Join(options), or call "
                            "dist::RegisterOptimizer<",
                            rule, ">(registry) before rpc::JoinCluster"))
        .Then([&agent,
               owner = worker.owner](const RRef<LocalOptimizer<O>>& rref) {
          return rpc::CreateBy<&HostOf<O>>(agent, owner, rref)
              .Then([&agent, rref](const RRef<OptimizerHost>& host) {
                return Local{rref, host,
                             rref.owner().name == agent.self().name};
              });
        });
  }

  // Calls call(local) for every worker.
  template <typename T, typename Call>
  static auto All(const Locals& locals, const Call& call) {
    std::vector<Future<T>> calls;
    for (const Local& local : locals) calls.push_back(call(local));
    return WaitAll(calls);
  }

  static Future<double> NormOf(const Locals& locals,
                               const rpc::CallOptions& options,
                               const ContextPtr& context) {
    // A local optimizer counts all that is to be stepped at its worker.
    const bool counts_here =
        std::any_of(locals.begin(), locals.end(),
                    [](const Local& local) { return local.is_here; });
    return All<double>(locals,
                       [&](const Local& local) {
                         return local.rref
                             .template Async<&LocalOptimizer<O>::SquareNorm>(
                                 options, context);
                       })
        .Then([others = counts_here ? 0 : context->SquareNormOfOthers()](
                  const std::vector<double>& squares) {
          return std::sqrt(
              std::accumulate(squares.begin(), squares.end(), others));
        });
  }

  static Future<void> StepAll(const Locals& locals,
                              const rpc::CallOptions& options,
                              const ContextPtr& context,
                              const StepRequest& request) {
    return All<void>(locals, [&](const Local& local) {
      return local.rref.template Async<&LocalOptimizer<O>::Step>(
          options, context, request);
    });
  }

  static Future<void> LoadParts(const Locals& locals,
                                const rpc::CallOptions& options,
                                const std::vector<optim::StateDict>& parts) {
    size_t i = 0;
    return All<void>(locals, [&](const Local& local) {
      return local.rref.template Async<&LocalOptimizer<O>::LoadState>(
          options, parts[i++]);
    });
  }

  Future<Locals> ready() const {
    const MutexLock lock(mutex_);
    return ready_;
  }

  rpc::Agent& agent_;
  const Groups groups_;
  const std::shared_ptr<Pace> pace_;
  mutable Mutex mutex_;
  Future<Locals> ready_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::dist
