// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/distributed/link_window.h"
#include "models/distributed/recorded_program.h"
#include "models/distributed/stage.h"

// How a stage makes and opens the windows of its links.
namespace baton::dist {
namespace {

std::vector<ParcelSpec> InOrder(const std::map<int, ParcelSpec>& parcels) {
  std::vector<ParcelSpec> specs;
  for (const auto& [micro_batch, spec] : parcels) specs.push_back(spec);
  return specs;
}

absl::StatusOr<std::shared_ptr<LinkWindow>> Join(
    Window in, const ParcelLayout& of_in, Window out,
    const ParcelLayout& of_out, std::shared_ptr<StepNumber> number) {
  return CatchErrors([&]() -> absl::StatusOr<std::shared_ptr<LinkWindow>> {
    return std::make_shared<LinkWindow>(
        LinkWindow::Side{std::move(in), of_in},
        LinkWindow::Side{std::move(out), of_out}, std::move(number));
  });
}

}  // namespace

void Stage::set_number(std::shared_ptr<StepNumber> number) {
  MutexLock lock(mutex_);
  number_ = std::move(number);
}

std::shared_ptr<StepNumber> Stage::number() {
  MutexLock lock(mutex_);
  return number_;
}

absl::StatusOr<WindowHandle> Stage::TakeOffer(const WindowOffer& offer) {
  if (!absl::c_linear_search(wiring_.sources(), offer.from)) {
    return spec_.Explain(absl::InvalidArgumentError(
        absl::StrCat("it takes nothing from stage ", offer.from)));
  }
  if (offer.of_gradients.is_own() && !offer.required) {
    return absl::UnavailableError(
        "the workers are one process, where values pass as they are");
  }
  const Device device = module_->device();
  if (offer.of_gradients.IsOn(device) && !offer.required) {
    return absl::UnavailableError(
        "the stages share a GPU, where a waiting one would take time from "
        "the other");
  }
  return CatchErrors([&]() -> absl::StatusOr<WindowHandle> {
    const ParcelLayout in(offer.outputs, offer.slots);
    const ParcelLayout out(offer.gradients, offer.slots);
    ASSIGN_OR_RETURN(Window theirs, Window::Open(offer.of_gradients, device));
    ASSIGN_OR_RETURN(Window own, Window::Make(device, in.bytes()));
    WindowHandle handle = own.handle();
    ASSIGN_OR_RETURN(auto window, Join(std::move(own), in, std::move(theirs),
                                       out, number()));
    MutexLock lock(mutex_);
    windows_[{offer.plan, offer.from}] = std::move(window);
    return handle;
  });
}

absl::Status Stage::MakeWindow(const StepPlan& plan, int32_t target,
                               Windows use, const Passed& passed,
                               std::chrono::milliseconds time) {
  const Device device = module_->device();
  if (device.is_cuda()) {
    if (!plan.steps) {
      return absl::UnavailableError(
          "between GPUs values pass through windows only in steps that step "
          "parameters, too");
    }
    if (const std::string why = WhyNotRecorded(*module_, spec_); !why.empty()) {
      return absl::UnavailableError(
          absl::StrCat("the stage's part of a step is not recorded, as ", why));
    }
  }
  const auto count = plan.micro_batches.size();
  if (passed.outputs.size() != count || passed.gradients.size() != count)
    return absl::UnavailableError("not every micro-batch passed values");
  WindowOffer offer;
  offer.plan = plan.id;
  offer.from = spec_.index;
  offer.required = use == Windows::kRequired;
  offer.slots = SlotsOf(plan, spec_.index, device);
  offer.outputs = InOrder(passed.outputs);
  offer.gradients = InOrder(passed.gradients);
  const ParcelLayout in(offer.gradients, offer.slots);
  const ParcelLayout out(offer.outputs, offer.slots);
  ASSIGN_OR_RETURN(Window own, Window::Make(device, in.bytes()));
  offer.of_gradients = own.handle();
  rpc::CallOptions options;
  options.timeout = time;
  ASSIGN_OR_RETURN(const WindowHandle handle,
                   behind_.at(target)
                       .Async<&Stage::TakeOffer>(options, offer)
                       .Await(kNoLimit));
  RETURN_IF_ERROR(own.CheckOpened());
  ASSIGN_OR_RETURN(Window theirs, Window::Open(handle, device));
  ASSIGN_OR_RETURN(auto window,
                   Join(std::move(own), in, std::move(theirs), out, number()));
  MutexLock lock(mutex_);
  windows_[{plan.id, target}] = std::move(window);
  return absl::OkStatus();
}

std::vector<MadeWindow> Stage::MakeWindows(const StepPlan& plan, Windows use,
                                           const std::map<int, Passed>& passed,
                                           std::chrono::milliseconds time) {
  std::vector<MadeWindow> made;
  for (const auto& link : passed) {
    const int32_t to = link.first;
    if (behind_.at(to).is_owner()) continue;
    const absl::Status status = CatchErrors(
        [&] { return MakeWindow(plan, to, use, link.second, time); });
    made.push_back({{spec_.index, to},
                    module_->device().is_cuda(),
                    std::string(status.message())});
    MutexLock lock(mutex_);
    window_to_[to].why_not = std::string(status.message());
  }
  return made;
}

absl::StatusOr<WindowMap> Stage::WindowsOf(uint64_t plan,
                                           const std::vector<LinkEnds>& links) {
  WindowMap windows;
  MutexLock lock(mutex_);
  for (auto& [target, state] : window_to_) state.used = false;
  for (const LinkEnds& link : links) {
    if (link.from != spec_.index && link.to != spec_.index) continue;
    const int other = link.from == spec_.index ? link.to : link.from;
    const auto found = windows_.find({plan, other});
    if (found == windows_.end()) {
      return spec_.Explain(absl::FailedPreconditionError(
          absl::StrCat("there is no window for stage ", other)));
    }
    windows.emplace(other, found->second);
    if (other > spec_.index) window_to_[other].used = true;
  }
  return windows;
}

WindowMap Stage::WindowsOf(uint64_t plan) {
  WindowMap windows;
  MutexLock lock(mutex_);
  for (const auto& [key, window] : windows_) {
    if (key.first == plan) windows.emplace(key.second, window);
  }
  return windows;
}

void Stage::SayNoWindow(const std::string& why) {
  MutexLock lock(mutex_);
  for (auto& [target, state] : window_to_) {
    if (state.why_not.empty()) state.why_not = why;
  }
}

Stage::WindowState Stage::WindowTo(int32_t target) {
  MutexLock lock(mutex_);
  const auto found = window_to_.find(target);
  return found == window_to_.end() ? WindowState() : found->second;
}

}  // namespace baton::dist
