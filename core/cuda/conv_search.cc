// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/conv_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/conv_tuning.h"
#include "core/cuda/capture.h"
#include "core/log.h"
#include "core/lru_cache.h"
#include "core/status.h"
#include "core/stream.h"

namespace baton::cuda {
namespace {

using Plan = std::shared_ptr<const ConvPlan>;

struct CacheKey {
  int device;
  ConvProblem problem;
  friend auto operator<=>(const CacheKey&, const CacheKey&) = default;
};
using Cache = LruCache<CacheKey, ConvPlan>;

// Plans that a search chose, and those that cuDNN suggests first. Never
// destroyed: cuDNN may be gone by then. They hold the kernels that captured
// graphs run, so there is room for more than a program is likely to have.
Cache& Searched() {
  static auto* const plans = new Cache(4096);
  return *plans;
}
Cache& Suggested() {
  static auto* const plans = new Cache(4096);
  return *plans;
}

// Lists are asked for in this order until there are `enough` candidates. A and
// B order about the same engines by different models; the fallback has simple
// ones that always work.
struct Mode {
  cudnnBackendHeurMode_t mode;
  size_t enough;
};
constexpr std::array<Mode, 3> kSearchModes = {{{CUDNN_HEUR_MODE_A, 12},
                                               {CUDNN_HEUR_MODE_B, 16},
                                               {CUDNN_HEUR_MODE_FALLBACK, 18}}};
constexpr std::array<Mode, 2> kFirstModes = {
    {{CUDNN_HEUR_MODE_A, 1}, {CUDNN_HEUR_MODE_FALLBACK, 1}}};

// Different plans within the limit of memory; when all want more, the one that
// wants least.
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

class Timer {
 public:
  Timer(const Launch& launch, cudnnHandle_t handle,
        const ConvOperands& operands)
      : handle_(handle),
        operands_(operands),
        stream_(CurrentStream(Device::Cuda(launch.device()))),
        begin_(stream_.device()),
        end_(stream_.device()) {}

  // Milliseconds of a usual run; infinite when it does not run, or takes so
  // much longer than `best` that another look is no use.
  double Time(const ConvPlan& plan, void* workspace, double best) {
    constexpr double kHopeless = 3, kShort = 0.3;
    try {
      Batch(plan, workspace, 1);  // loads kernels
      const double first = Batch(plan, workspace, 1);
      if (first > kHopeless * best) return kNever;
      // Several short runs at once hide the time of giving them to the GPU.
      const int runs = first < kShort ? 5 : 1;
      std::array<double, 3> times = {};
      for (double& time : times) time = Batch(plan, workspace, runs);
      std::sort(times.begin(), times.end());
      return times[1];
    } catch (const Error& error) {
      LogDebug("convolutions: passed over an engine: ", error.what());
      return kNever;
    }
  }

  static constexpr double kNever = std::numeric_limits<double>::infinity();

 private:
  double Batch(const ConvPlan& plan, void* workspace, int runs) {
    begin_.Record(stream_);
    for (int i = 0; i < runs; ++i) plan.Run(handle_, operands_, workspace);
    end_.Record(stream_);
    end_.Synchronize();
    return end_.MillisecondsSince(begin_) / runs;
  }

  const cudnnHandle_t handle_;
  const ConvOperands operands_;
  const Stream stream_;
  Event begin_, end_;
};

// Memory for all of the plans to use in turn; those for which there is not
// enough are dropped.
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

Plan Fastest(const Launch& launch, const ConvProblem& problem,
             cudnnHandle_t handle, const ConvOperands& operands,
             const std::shared_ptr<const ConvGraph>& graph) {
  std::vector<Plan> plans = Candidates(graph, kSearchModes);
  if (plans.size() <= 1) return plans.empty() ? nullptr : plans[0];
  const Tensor workspace = SharedWorkspace(launch.device(), plans);
  Timer timer(launch, handle, operands);
  Plan fastest;
  double best = Timer::kNever;
  for (const Plan& plan : plans) {
    const double time = timer.Time(*plan, workspace.raw_data(), best);
    if (time >= best) continue;
    best = time;
    fastest = plan;
  }
  LogInfo("convolutions: engine ", fastest ? fastest->choice().engine : -1,
          " of ", plans.size(), " takes ", best, " ms: ", KeyOf(problem));
  return fastest;
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

// One search at a time: two would disturb each other's timing, and the second
// finds what the first chose when both want the same.
Mutex& SearchMutex() {
  static auto* const mutex = new Mutex;
  return *mutex;
}

Plan Search(const Launch& launch, const ConvProblem& problem,
            cudnnHandle_t handle, const ConvOperands& operands,
            const std::string& key,
            const std::shared_ptr<const ConvGraph>& graph) {
  MutexLock lock(SearchMutex());
  ConvChoices& choices = ConvChoices::OfProcess();
  if (const auto known = choices.Find(key)) {
    if (Plan plan = ConvPlan::Make(graph, *known)) return plan;
    LogWarning("convolutions: engine ", known->engine,
               " does not fit, searching again: ", key);
  }
  Plan plan =
      RequirePlan(problem, Fastest(launch, problem, handle, operands, graph));
  choices.Add(key, plan->choice());
  return plan;
}

// f64 is for checks, not for speed.
bool WantsSearch(const ConvProblem& problem) {
  return problem.dtype != DType::kF64 && ConvSearch() && !problem.deterministic;
}

}  // namespace

bool WouldSearch(const Launch& launch, const ConvProblem& problem) {
  return WantsSearch(problem) && !IsCapturing(launch.stream()) &&
         !Searched().Find({launch.device(), problem});
}

std::shared_ptr<const ConvPlan> ConvPlanFor(const Launch& launch,
                                            const ConvProblem& problem,
                                            cudnnHandle_t handle,
                                            const ConvOperands& operands) {
  const CacheKey cache_key{launch.device(), problem};
  const bool search = WantsSearch(problem);
  if (search) {
    if (Plan plan = Searched().Find(cache_key)) return plan;
  }
  const RelaxedCapture relaxed;  // plans load kernels, whatever is captured
  const auto graph = [&] {
    return std::make_shared<const ConvGraph>(problem, handle);
  };
  if (search) {
    const std::string key = MachineOf(launch.device()) + KeyOf(problem);
    if (!IsCapturing(launch.stream())) {
      return Searched().GetOrMake(cache_key, [&] {
        return Search(launch, problem, handle, operands, key, graph());
      });
    }
    if (const auto known = ConvChoices::OfProcess().Find(key)) {
      Plan plan = ConvPlan::Make(graph(), *known);
      if (plan) return Searched().GetOrMake(cache_key, [&] { return plan; });
    }
  }
  return Suggested().GetOrMake(cache_key, [&]() -> Plan {
    const std::vector<Plan> first = Candidates(graph(), kFirstModes);
    return RequirePlan(problem, first.empty() ? nullptr : first[0]);
  });
}

}  // namespace baton::cuda
