// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What forwards of small remote modules cost:
//   module_bench [rounds]
// This process calls modules of two others, each a factor for a tensor. Prints
// a JSON line for each size of the tensor: microseconds, medians over the
// rounds of the medians of each round, of one forward that is awaited ("one")
// and of two modules behind each other, of which the second one's is ("chain");
// and, for a small tensor, of the backward of such a chain from w0 over w1 and
// w2 back: whose marking is kept, which is marked as if it were new, and which
// takes all edges for part of it ("fast").

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/distributed/context.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/status.h"
#include "models/distributed/module.h"
#include "rpc/cluster.h"
#include "rpc/rendezvous.h"
#include "tests/bench/timing.h"
#include "tests/support/child_process.h"
#include "tests/support/program_path.h"

namespace baton::bench {
namespace {

constexpr int64_t kBytes[] = {64, 16 << 10, 64 << 10, 128 << 10, 1 << 20};
constexpr int kForwards = 100;  // of one context
constexpr int kContexts = 10;

class Factor final : public nn::Module {
 public:
  Variable Forward(const Variable& x) override { return x * factor_; }
  using Exports = rpc::Methods<rpc::kConstructor<>, &Factor::Forward>;

 private:
  Variable& factor_ = RegisterParameter("factor", Tensor::Full({1}, 1));
};

template <typename T>
T Value(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  std::cerr << "module_bench: " << result.status() << "\n";
  std::exit(1);
}

std::unique_ptr<rpc::Agent> Join(const std::string& name,
                                 const std::string& rendezvous) {
  rpc::Registry registry;
  dist::Register(registry);
  dist::RegisterModule<Factor>(registry);
  rpc::ClusterOptions options;
  options.name = name;
  options.rendezvous = rendezvous;
  options.world_size = 3;
  auto agent = Value(rpc::JoinCluster(std::move(options), std::move(registry)));
  dist::Attach(*agent);
  return agent;
}

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << "module_bench: " << status << "\n";
  std::exit(1);
}

using Times = std::vector<double>;

class Bench {
 public:
  explicit Bench(rpc::Agent& agent)
      : agent_(agent),
        front_(Value(dist::Module<Factor>::Create(agent, "w1").Await())),
        back_(Value(dist::Module<Factor>::Create(agent, "w2").Await())) {}

  void Round() {
    for (const int64_t bytes : kBytes) {
      const Tensor x = Tensor::Ones({bytes / 4});
      Measure(absl::StrCat("forward one ", bytes, " B"),
              [&](const dist::Context& ctx) {
                Value(front_.Forward(ctx, x).Await());
              });
      Measure(absl::StrCat("forward chain ", bytes, " B"),
              [&](const dist::Context& ctx) {
                Value(back_.Forward(ctx, front_.Forward(ctx, x)).Await());
              });
    }
  }
  // In one context the edges have other numbers each time, so that no graph is
  // of a form that was there before.
  void BackwardRound() {
    const auto backward = [&](const char* name, int steps, int contexts,
                              dist::Markings markings) {
      Times times;
      for (int c = 0; c < contexts; ++c) {
        dist::Context ctx(agent_);
        for (int i = 0; i < steps; ++i) {
          const Variable x(Tensor::Ones({16}), true);
          const Variable hidden = Value(front_.Forward(ctx, x).Await());
          const Variable loss =
              autograd::Sum(Value(back_.Forward(ctx, hidden).Await()));
          const auto begin = Clock::now();
          Check(ctx.Backward(loss, {.markings = markings}));
          times.push_back(Microseconds(Clock::now() - begin));
        }
        Check(ctx.Release().Await());
      }
      Keep(absl::StrCat("backward ", name), Median(times));
    };
    backward("kept", 1, kForwards, dist::Markings::kExact);
    backward("marked", kForwards, 1, dist::Markings::kExact);
    backward("fast", 1, kForwards, dist::Markings::kFast);
  }
  void Print() const {
    for (const std::string& name : order_) {
      const Times& times = times_.at(name);
      std::printf(
          "{\"what\": \"%s\", \"median_us\": %.1f, "
          "\"best_us\": %.1f}\n",
          name.c_str(), Median(times), Quantile(times, 0));
    }
  }

 private:
  template <typename Call>
  void Measure(const std::string& name, Call call) {
    Times times;
    for (int i = 0; i < kContexts; ++i) {
      dist::Context ctx(agent_);
      const Times some = TimesOf(kForwards, kForwards / 10, [&] { call(ctx); });
      times.insert(times.end(), some.begin(), some.end());
    }
    Keep(name, Median(times));
  }
  void Keep(const std::string& name, double time) {
    if (times_.count(name) == 0) order_.push_back(name);
    times_[name].push_back(time);
  }

  rpc::Agent& agent_;
  const dist::Module<Factor> front_, back_;
  std::vector<std::string> order_;
  std::map<std::string, Times> times_;
};

int Run(int rounds) {
  const auto server = Value(rpc::RendezvousServer::Make("127.0.0.1:0"));
  std::vector<std::unique_ptr<ChildProcess>> children;
  for (const char* name : {"w1", "w2"}) {
    children.push_back(std::make_unique<ChildProcess>(
        std::vector<std::string>{testing::ProgramPath("module_bench"), "peer",
                                 name, server->address()}));
  }
  {
    const auto agent = Join("w0", server->address());
    Bench bench(*agent);
    for (int i = 0; i < rounds; ++i) {
      bench.Round();
      bench.BackwardRound();
    }
    bench.Print();
  }
  for (const auto& child : children) child->CloseInput();
  for (const auto& child : children) child->Wait();
  return 0;
}

int Serve(const char* name, const char* rendezvous) {
  const auto agent = Join(name, rendezvous);
  while (std::getchar() != EOF) {
  }
  return 0;
}

}  // namespace
}  // namespace baton::bench

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  if (argc == 4 && std::strcmp(argv[1], "peer") == 0)
    return baton::bench::Serve(argv[2], argv[3]);
  return baton::bench::Run(argc > 1 ? std::atoi(argv[1]) : 10);
}
