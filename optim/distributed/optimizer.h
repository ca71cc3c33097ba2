// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/distributed/context.h"
#include "autograd/distributed/parameter_list.h"
#include "optim/distributed/local_optimizer.h"
#include "optim/distributed/shares.h"

namespace baton::dist {

// Every worker's registry needs it for each kind of optimizer that is used.
template <typename O>
void RegisterOptimizer(rpc::Registry& registry) {
  registry.Add<LocalOptimizer<O>>();
  registry.AddFunction<&HostOf<O>>();
}

// Steps parameters where they live, by the gradients of a context. O is
// optim::Sgd, optim::Adam or another that OptionsOf knows.
//
//   dist::Optimizer<optim::Sgd> sgd(agent, {.lr = 0.1}, {front, back});
//   ...
//   RETURN_IF_ERROR(ctx.Backward(loss));
//   RETURN_IF_ERROR(sgd.Step(ctx));
//
// Calls end by the time limit of `options`, or else the agent's, counted from
// when the local optimizers are there; Await needs no limit of its own.
// Parameters without a gradient in the context keep their value and state. One
// that several sources have is stepped once.
// Steps at one worker, of whatever trainers, come one after the other, and
// beside no forward of these parameters' modules and no backward. Must not
// outlive the agent. Thread-safe.
template <typename O>
class Optimizer {
 public:
  using Options = typename LocalOptimizer<O>::Options;

  // Begins to make the local optimizers; what goes wrong shows in Ready and in
  // every Step. Sources are RRefs of modules or of Variables.
  Optimizer(rpc::Agent& agent, const Options& options,
            const std::vector<ParameterSource>& sources)
      : lr_(options.lr), ready_(MakeLocals(agent, options, sources)) {}

  Future<void> Ready() const {
    return ready_.Then([](const Locals&) {});
  }

  absl::Status Step(const Context& ctx, const rpc::CallOptions& options = {}) {
    return StepAsync(ctx, options).Await(kNoLimit);
  }
  Future<void> StepAsync(const Context& ctx,
                         const rpc::CallOptions& options = {}) {
    // The context may be gone when the locals are ready at last.
    return ready_.Then([scope = ctx.call_scope(), options,
                        lr = lr_.load()](const Locals& locals) {
      std::vector<Future<void>> steps;
      for (const Local& local : locals) {
        steps.push_back(local.rref.template Async<&LocalOptimizer<O>::Step>(
            options, scope, lr));
      }
      return WaitAll(steps);
    });
  }

  // What steps the parameters of each worker that has any, once it is there.
  Future<std::vector<RRef<OptimizerHost>>> Hosts() const {
    return ready_.Then([](const Locals& locals) {
      std::vector<RRef<OptimizerHost>> hosts;
      for (const Local& local : locals) hosts.push_back(local.host);
      return hosts;
    });
  }

  // From the next Step on.
  double lr() const { return lr_; }
  void set_lr(double lr) { lr_ = lr; }

  // Copies of all state, named "<source>.<parameter>.<name>" by position: a
  // checkpoint that fits the same sources wherever they are placed.
  absl::StatusOr<optim::StateDict> State(
      const rpc::CallOptions& options = {}) const {
    return ready_
        .Then([options](const Locals& locals) {
          std::vector<Future<optim::StateDict>> states;
          for (const Local& local : locals) {
            states.push_back(
                local.rref.template Async<&LocalOptimizer<O>::State>(options));
          }
          return WaitAll(states);
        })
        .Then([](const std::vector<optim::StateDict>& states) {
          optim::StateDict all;
          for (const auto& state : states) {
            all.insert(state.begin(), state.end());
          }
          return all;
        })
        .Await(kNoLimit);
  }

  // InvalidArgument for an entry that fits no parameter, or a misfit at a
  // worker; other workers may have loaded theirs then.
  absl::Status LoadState(const optim::StateDict& state,
                         const rpc::CallOptions& options = {}) {
    return ready_
        .Then([state, options](const Locals& locals) -> Future<void> {
          std::map<int32_t, size_t> local_of;
          for (size_t i = 0; i < locals.size(); ++i) {
            for (int32_t handle : locals[i].handles) local_of[handle] = i;
          }
          auto parts = SplitState(state, local_of, locals.size());
          if (!parts.ok()) return ReadyFuture<void>(parts.status());
          std::vector<Future<void>> loads;
          for (size_t i = 0; i < locals.size(); ++i) {
            loads.push_back(
                locals[i].rref.template Async<&LocalOptimizer<O>::LoadState>(
                    options, (*parts)[i]));
          }
          return WaitAll(loads);
        })
        .Await(kNoLimit);
  }

 private:
  struct Local {
    RRef<LocalOptimizer<O>> rref;
    RRef<OptimizerHost> host;
    std::vector<int32_t> handles;
  };
  using Locals = std::vector<Local>;

  static Future<Locals> MakeLocals(
      rpc::Agent& agent, const Options& options,
      const std::vector<ParameterSource>& sources) {
    std::vector<Future<Local>> locals;
    for (WorkerShares& group : GroupByOwner(agent, sources)) {
      locals.push_back(MakeLocal(agent, options, std::move(group)));
    }
    return WaitAll(locals);
  }

  static Future<Local> MakeLocal(rpc::Agent& agent, const Options& options,
                                 WorkerShares group) {
    return group.listed.Then(
        [&agent, options, group](const std::vector<bool>&) {
          return rpc::Create<LocalOptimizer<O>>(agent, group.owner, options,
                                                group.shares)
              .Then([&agent, group](const RRef<LocalOptimizer<O>>& rref) {
                return rpc::CreateBy<&HostOf<O>>(agent, group.owner, rref)
                    .Then([group, rref](const RRef<OptimizerHost>& host) {
                      return Local{rref, host, group.Handles()};
                    });
              });
        });
  }

  std::atomic<double> lr_;
  const Future<Locals> ready_;
};

}  // namespace baton::dist
