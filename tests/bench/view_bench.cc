// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What it costs that an agent keeps count of its calls, and traces them:
// JSON lines, each the least of many rounds, which run in turn.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "rpc/peers.h"
#include "rpc/tracer.h"
#include "tests/support/local_cluster.h"

namespace baton {
namespace {

using Clock = std::chrono::steady_clock;

int Nothing(int x) { return x; }

double NanosOf(int times, const std::function<void()>& work) {
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < times; ++i) work();
  return std::chrono::duration<double, std::nano>(Clock::now() - begin)
             .count() /
         times;
}

struct Subject {
  const char* what;
  int times;
  std::function<void()> before;
  std::function<void()> work;
  double least = 1e18;
};

void Main() {
  testing::LocalCluster cluster({.fill = [](rpc::Registry& registry) {
    registry.AddFunction<&Nothing>();
  }});
  rpc::Agent& alice = cluster["alice"];
  const auto call = [&] {
    if (!alice.Async<&Nothing>("bob", 1).Await().ok()) std::abort();
  };
  const auto trace = [&](bool on) {
    for (rpc::Agent* agent : {&alice, &cluster["bob"]}) {
      agent->tracer()->Take();
      if (on)
        agent->tracer()->Start(1'000'000, Clock::now() + std::chrono::hours(1));
    }
  };
  rpc::internal::Peers peers({"alice", rpc::Rank{0}, 1, ""});
  const auto bob = peers.Add({"bob", rpc::Rank{1}, 2, ""}).peer;
  rpc::Tracer tracer;
  const std::string method = "Stage::Forward";
  int seen = 0;
  std::vector<Subject> subjects = {
      {"flag of a tracer that is off, ns", 1'000'000, [] {},
       [&] { seen += tracer.on(); }},
      {"span of a tracer that is off, ns", 1'000'000, [] {},
       [&] {
         const rpc::TraceSpan span(tracer, method,
                                   [] { return std::string("forward"); });
       }},
      {"count of one call, ns", 200'000, [] {},
       [&] {
         peers.Count(*bob, {.method = {1, 2},
                            .method_name = method,
                            .micros = 20,
                            .bytes_sent = 100,
                            .bytes_received = 100});
       }},
      {"empty call in one process, trace off, ns", 2'000, [&] { trace(false); },
       call},
      {"empty call in one process, trace on, ns", 2'000, [&] { trace(true); },
       call}};
  for (int round = 0; round < 40; ++round) {
    for (Subject& subject : subjects) {
      subject.before();
      subject.least =
          std::min(subject.least, NanosOf(subject.times, subject.work));
    }
  }
  for (const Subject& subject : subjects)
    std::printf("{\"what\": \"%s\", \"value\": %.2f}\n", subject.what,
                subject.least);
  if (seen != 0) std::abort();
}

}  // namespace
}  // namespace baton

int main() { baton::Main(); }
