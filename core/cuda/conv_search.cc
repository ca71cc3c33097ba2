// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/conv_search.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/conv_tuning.h"
#include "core/cuda/capture.h"
#include "core/cuda/conv_trial.h"
#include "core/log.h"
#include "core/lru_cache.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

using Plan = std::shared_ptr<const ConvPlan>;

struct CacheKey {
  int device;
  ConvProblem problem;
  friend auto operator<=>(const CacheKey&, const CacheKey&) = default;
};
using Cache = LruCache<CacheKey, ConvPlan>;

// The plans that a search chose, and those that cuDNN suggests first. Never
// destroyed, because cuDNN may be gone by then. Plans hold the kernels that
// captured graphs run, so there is room for more of them than a program is
// likely to have.
Cache& Searched() {
  static auto* const plans = new Cache(4096);
  return *plans;
}
Cache& Suggested() {
  static auto* const plans = new Cache(4096);
  return *plans;
}

// cuDNN's lists are requested in this order until there are `enough`
// candidates. A and B rank about the same engines by different models; the
// fallback has simple engines that always work.
struct Mode {
  cudnnBackendHeurMode_t mode;
  size_t enough;
};
constexpr std::array<Mode, 3> kSearchModes = {{{CUDNN_HEUR_MODE_A, 12},
                                               {CUDNN_HEUR_MODE_B, 16},
                                               {CUDNN_HEUR_MODE_FALLBACK, 18}}};
constexpr std::array<Mode, 2> kFirstModes = {
    {{CUDNN_HEUR_MODE_A, 1}, {CUDNN_HEUR_MODE_FALLBACK, 1}}};

// Returns different plans within the memory limit. If all need more, returns
// the one that needs least.
template <size_t kModes>
std::vector<Plan> Candidates(const std::shared_ptr<const ConvGraph>& graph,
                             const std::array<Mode, kModes>& modes) {
  const int64_t limit = ConvWorkspaceLimit();
  std::vector<ConvChoice> seen;
  std::vector<Plan> plans;
  Plan smallest;
  for (const Mode& mode : modes) {
    if (plans.size() >= mode.enough) continue;
    for (const ConvChoice& choice : graph->Suggest(mode.mode)) {
      if (plans.size() >= mode.enough) break;
      if (std::find(seen.begin(), seen.end(), choice) != seen.end()) continue;
      seen.push_back(choice);
      Plan plan = ConvPlan::Make(graph, choice);
      if (!plan) continue;
      if (!smallest || plan->workspace_bytes() < smallest->workspace_bytes())
        smallest = plan;
      if (plan->workspace_bytes() <= limit) plans.push_back(std::move(plan));
    }
  }
  if (plans.empty() && smallest) plans.push_back(std::move(smallest));
  return plans;
}

Plan RequirePlan(const ConvProblem& problem, Plan plan) {
  if (!plan) {
    Fail(OpOf(problem.pass),
         absl::StrCat("cuDNN cannot do this: ", KeyOf(problem)),
         absl::StatusCode::kUnimplemented);
  }
  return plan;
}

Tensor Workspace(int device, int64_t bytes) {
  return Tensor::Empty({bytes},
                       {.dtype = DType::kU8, .device = Device::Cuda(device)});
}

// Returns memory that all plans can use in turn. Drops the plans for which
// there is not enough.
Tensor SharedWorkspace(int device, std::vector<Plan>& plans) {
  const auto less = [](const Plan& a, const Plan& b) {
    return a->workspace_bytes() < b->workspace_bytes();
  };
  while (true) {
    const int64_t most = (*std::max_element(plans.begin(), plans.end(), less))
                             ->workspace_bytes();
    try {
      return Workspace(device, most);
    } catch (const Error& error) {
      if (error.status().code() != absl::StatusCode::kResourceExhausted) throw;
      std::erase_if(plans, [most](const Plan& plan) {
        return plan->workspace_bytes() == most;
      });
      if (plans.empty()) throw;
    }
  }
}

// Returns null if no plan runs, or none adds to its output as the problem
// requires.
Plan Fastest(const Launch& launch, const ConvProblem& problem, ConvTrial& trial,
             const std::shared_ptr<const ConvGraph>& graph) {
  std::vector<Plan> plans = Candidates(graph, kSearchModes);
  if (plans.empty()) return nullptr;
  const Tensor workspace = SharedWorkspace(launch.device(), plans);
  Plan fastest;
  double best = ConvTrial::kNever;
  for (const Plan& plan : plans) {
    const double time = trial.Time(*plan, workspace.raw_data(), best);
    if (time >= best || !trial.Adds(*plan, workspace.raw_data())) continue;
    best = time;
    fastest = plan;
  }
  LogInfo("convolutions: engine ", fastest ? fastest->choice().engine : -1,
          " of ", plans.size(), " takes ", best, " ms: ", KeyOf(problem));
  return fastest;
}

// Returns cuDNN's first suggestion that fits. Whether it adds can only be tried
// while nothing is captured.
Plan First(const Launch& launch, const ConvProblem& problem, ConvTrial& trial,
           const std::shared_ptr<const ConvGraph>& graph) {
  if (!problem.accumulate) {
    const std::vector<Plan> first = Candidates(graph, kFirstModes);
    return first.empty() ? nullptr : first[0];
  }
  if (IsCapturing(launch.stream())) return nullptr;
  for (const Plan& plan : Candidates(graph, kSearchModes)) {
    const Tensor workspace =
        Workspace(launch.device(), plan->workspace_bytes());
    if (trial.Adds(*plan, workspace.raw_data())) return plan;
  }
  return nullptr;
}

std::string MachineOf(int device) {
  static auto* const names = new LruCache<int, std::string>(64);
  return *names->GetOrMake(device, [device] {
    cudaDeviceProp properties;
    Check("conv2d", cudaGetDeviceProperties(&properties, device));
    return std::make_shared<const std::string>(
        absl::StrCat(properties.name, " cudnn-", cudnnGetVersion(), " "));
  });
}

// Only one search runs at a time: two would disturb each other's timing, and
// the second one finds what the first chose if both want the same.
Mutex& SearchMutex() {
  static auto* const mutex = new Mutex;
  return *mutex;
}

Plan Search(const Launch& launch, const ConvProblem& problem, ConvTrial& trial,
            const std::string& key,
            const std::shared_ptr<const ConvGraph>& graph) {
  MutexLock lock(SearchMutex());
  ConvChoices& choices = ConvChoices::OfProcess();
  if (const auto known = choices.Find(key)) {
    if (Plan plan = ConvPlan::Make(graph, *known)) return plan;
    LogWarning("convolutions: engine ", known->engine,
               " does not fit, searching again: ", key);
  }
  Plan plan = Fastest(launch, problem, trial, graph);
  if (plan) choices.Add(key, plan->choice());
  return plan;
}

// f64 is for checks, not for speed, so it is not searched.
bool WantsSearch(const ConvProblem& problem) {
  return problem.dtype != DType::kF64 && ConvSearch() && !problem.deterministic;
}

// Returns the cache for new plans of the problem. In a capture, Known also
// looks in the other cache, for plans that a search chose.
Cache& CacheFor(const Launch& launch, const ConvProblem& problem) {
  return WantsSearch(problem) && !IsCapturing(launch.stream()) ? Searched()
                                                               : Suggested();
}

Plan Known(const Launch& launch, const ConvProblem& problem) {
  const CacheKey key{launch.device(), problem};
  if (WantsSearch(problem)) {
    if (Plan plan = Searched().Find(key)) return plan;
  }
  return CacheFor(launch, problem).Find(key);
}

Plan New(const Launch& launch, const ConvProblem& problem, ConvTrial& trial,
         const std::shared_ptr<const ConvGraph>& graph) {
  if (WantsSearch(problem)) {
    const std::string key = MachineOf(launch.device()) + KeyOf(problem);
    if (!IsCapturing(launch.stream()))
      return Search(launch, problem, trial, key, graph);
    if (const auto known = ConvChoices::OfProcess().Find(key)) {
      if (Plan plan = ConvPlan::Make(graph, *known)) return plan;
    }
  }
  return First(launch, problem, trial, graph);
}

}  // namespace

bool WouldTry(const Launch& launch, const ConvProblem& problem) {
  return !IsCapturing(launch.stream()) && !Known(launch, problem);
}

std::shared_ptr<const ConvPlan> ConvPlanFor(const Launch& launch,
                                            const ConvProblem& problem,
                                            cudnnHandle_t handle,
                                            const ConvOperands& operands,
                                            const Tensor& sum) {
  if (Plan plan = Known(launch, problem)) return plan;
  const RelaxedCapture relaxed;  // plans load kernels, whatever is captured
  ConvTrial trial(launch, handle, operands, sum);
  Plan plan = New(launch, problem, trial,
                  std::make_shared<const ConvGraph>(problem, handle));
  if (!plan && problem.accumulate) {
    ConvProblem apart = problem;
    apart.accumulate = false;
    plan = ConvPlanFor(launch, apart, handle, operands, Tensor());
    // Outside of the capture there may be a plan that adds.
    if (IsCapturing(launch.stream())) return plan;
  }
  return CacheFor(launch, problem).GetOrMake({launch.device(), problem}, [&] {
    return RequirePlan(problem, plan);
  });
}

}  // namespace baton::cuda
