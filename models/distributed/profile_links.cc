// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "models/distributed/profile.h"

namespace baton::dist {

namespace profile_calls {
namespace {

// The size of a large activation.
constexpr int64_t kLargeMessage = 8 << 20;
constexpr int kMessages = 7;

// Measures how long a tensor of `bytes` takes to be sent and acknowledged.
absl::StatusOr<double> RoundTrip(rpc::CallContext& call,
                                 const std::string& worker, int64_t bytes) {
  const Tensor tensor = Tensor::Zeros(
      {bytes}, {.dtype = DType::kU8, .device = call.compute().device});
  std::vector<double> seconds;
  for (int i = 0; i <= kMessages; ++i) {
    const std::chrono::steady_clock::time_point begin =
        std::chrono::steady_clock::now();
    RETURN_IF_ERROR(call.agent()
                        .Async<&Take>(worker, call, tensor)
                        .Await(kNoLimit)
                        .status());
    const std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin;
    if (i > 0) seconds.push_back(took.count());
  }
  return MedianOf(std::move(seconds));
}

}  // namespace

bool Take(const Tensor& tensor) { return tensor.defined(); }

absl::StatusOr<std::vector<LinkCosts>> MeasureLinks(
    rpc::CallContext& call, const std::vector<std::string>& workers) {
  std::vector<LinkCosts> links;
  for (const std::string& worker : workers) {
    ASSIGN_OR_RETURN(const double small, RoundTrip(call, worker, 1));
    ASSIGN_OR_RETURN(const double large,
                     RoundTrip(call, worker, kLargeMessage));
    links.push_back(
        {small / 2, std::max(0.0, large - small) / double{kLargeMessage}});
  }
  return links;
}

}  // namespace profile_calls

void RegisterLinks(rpc::Registry& registry) {
  registry.AddFunction<&profile_calls::MeasureLinks>()
      .AddFunction<&profile_calls::PlaceHere>()
      .AddFunction<&profile_calls::Take>();
}

absl::StatusOr<std::vector<std::vector<LinkCosts>>> ProfileLinks(
    rpc::Agent& agent, const std::vector<std::string>& workers,
    std::chrono::milliseconds timeout) {
  std::vector<std::vector<LinkCosts>> links;
  for (size_t from = 0; from < workers.size(); ++from) {
    std::vector<std::string> others = workers;
    others.erase(others.begin() + static_cast<long>(from));
    ASSIGN_OR_RETURN(
        std::vector<LinkCosts> measured,
        rpc::OrNameMissing(
            agent.Async<&profile_calls::MeasureLinks>(
                workers[from], rpc::CallOptions{.timeout = timeout}, others),
            "ProfileLinks", "call dist::RegisterLinks(registry) before joining")
            .Await(kNoLimit));
    if (measured.size() != others.size()) {
      return absl::InternalError(absl::StrCat(workers[from], " measured ",
                                              measured.size(), " links of ",
                                              others.size()));
    }
    measured.insert(measured.begin() + static_cast<long>(from), LinkCosts());
    links.push_back(std::move(measured));
  }
  return links;
}

}  // namespace baton::dist
