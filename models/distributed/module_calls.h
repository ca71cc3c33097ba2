// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "autograd/distributed/remote_hooks.h"
#include "core/status.h"
#include "models/distributed/stage.h"
#include "models/distributed/worker_state.h"
#include "models/nn/graphed.h"
#include "models/nn/module.h"
#include "rpc/agent.h"

namespace baton::dist {

// The device of a module and the dtype of its weights
// (nn::Module::LowerPrecision). What is left out is as its worker has declared
// (rpc::Compute).
struct Placement {
  std::optional<Device> device{};
  std::optional<DType> dtype{};
  static constexpr auto Fields =
      std::tuple{&Placement::device, &Placement::dtype};
};

// Throws Error if there is no such device.
void Place(nn::Module& module, const Placement& placement,
           const rpc::Compute& declared);

// The functions that any module supports remotely, besides its own exports.
namespace module_calls {

// Makes an M as rpc::Create does, and moves it to its device before anybody can
// use it.
template <typename M, typename... P>
absl::StatusOr<std::shared_ptr<M>> Make(rpc::CallContext& call,
                                        const Placement& placement,
                                        P... arguments) {
  constexpr auto kMake = rpc::internal::MakerOf<M>();
  absl::StatusOr<std::shared_ptr<M>> made = [&] {
    if constexpr (rpc::internal::Signature<
                      decltype(rpc::internal::MakerOf<M>())>::kTakesContext) {
      return absl::StatusOr<std::shared_ptr<M>>(
          kMake(call, std::move(arguments)...));
    } else {
      return absl::StatusOr<std::shared_ptr<M>>(kMake(std::move(arguments)...));
    }
  }();
  if (made.ok() && *made != nullptr) Place(**made, placement, call.compute());
  return made;
}

// Adds a forward pre-hook, a forward hook or a backward hook, depending on the
// parameters of kHook.
template <auto kHook>
autograd::HookHandle AddTo(nn::Module& module) {
  using Hook = decltype(kHook);
  const std::string name = rpc::internal::FunctionName<kHook>();
  if constexpr (std::is_convertible_v<Hook, nn::Module::ForwardPreHook> ||
                std::is_convertible_v<Hook, nn::Module::ForwardAllPreHook>) {
    return module.AddForwardPreHook(kHook, name);
  } else if constexpr (std::is_convertible_v<Hook, nn::Module::ForwardHook> ||
                       std::is_convertible_v<Hook,
                                             nn::Module::ForwardAllHook>) {
    return module.AddForwardHook(kHook, name);
  } else {
    return module.AddBackwardHook(kHook, name);
  }
}

// Calls `fn.template operator()<P...>()` with the parameters by which an M is
// made.
template <typename M, typename Fn>
auto WithParametersOfMake(Fn fn) {
  using Tuple = typename rpc::internal::Signature<
      decltype(rpc::internal::MakerOf<M>())>::Tuple;
  return [&]<typename... P>(std::tuple<P...>*) {
    return fn.template operator()<P...>();
  }(static_cast<Tuple*>(nullptr));
}

// Calls M::Forward, or `replayed` if it is given, with the output of another
// module, wherever that is.
template <typename M>
Future<Variable> ForwardOf(rpc::CallContext& call, const RRef<M>& module,
                           const std::optional<RRef<nn::Graphed>>& replayed,
                           const rpc::ValueOrRRef<Variable>& x) {
  std::shared_ptr<nn::Graphed> graphed;
  if (replayed.has_value()) {
    absl::StatusOr<std::shared_ptr<nn::Graphed>> here = replayed->LocalValue();
    if (!here.ok()) return ReadyFuture<Variable>(here.status());
    graphed = *std::move(here);
  }
  return x.Fetch(call).Then([call, module, graphed](const Variable& here) {
    return module.With(call, rpc::Access::kExclusive,
                       [here, graphed](M& local) {
                         return graphed == nullptr ? local(local.Placed(here))
                                                   : graphed->Forward(here);
                       });
  });
}

template <typename M>
absl::StatusOr<std::shared_ptr<nn::Graphed>> MakeReplayed(
    const RRef<M>& module, const nn::RecordingOptions& options) {
  ASSIGN_OR_RETURN(auto local, module.LocalValue());
  return CatchErrors([&]() -> absl::StatusOr<std::shared_ptr<nn::Graphed>> {
    return std::make_shared<nn::Graphed>(std::move(local), options);
  });
}

template <typename M>
Future<void> To(rpc::CallContext& call, const RRef<M>& module, Device device) {
  return module.With(call, rpc::Access::kExclusive,
                     [device](M& local) { local.To(device); });
}

template <typename M>
Future<void> SetTraining(rpc::CallContext& call, const RRef<M>& module,
                         bool training) {
  return module.With(call, rpc::Access::kExclusive,
                     [training](M& local) { local.Train(training); });
}

template <typename M>
Future<int64_t> NumParameters(rpc::CallContext& call, const RRef<M>& module) {
  return module.With(call, rpc::Access::kShared,
                     [](M& local) { return local.NumParameters(); });
}

// Returns copies, because the module may change while they are sent.
template <typename M>
Future<nn::StateMap> StateDict(rpc::CallContext& call, const RRef<M>& module) {
  return module.With(call, rpc::Access::kShared, [](M& local) {
    nn::StateMap state = local.StateDict();
    for (auto& [name, tensor] : state) tensor = tensor.Clone();
    return state;
  });
}

template <typename M>
Future<void> LoadStateDict(rpc::CallContext& call, const RRef<M>& module,
                           const nn::StateMap& state, bool strict) {
  return module.With(call, rpc::Access::kExclusive, [state, strict](M& local) {
    return local.LoadStateDict(state, strict);
  });
}

template <typename M>
absl::StatusOr<std::shared_ptr<HeldModule>> Hold(const RRef<M>& module) {
  auto held = std::make_shared<HeldModule>();
  ASSIGN_OR_RETURN(held->module, module.LocalValue());
  ASSIGN_OR_RETURN(held->lock, module.LocalLock());
  return held;
}

// A class, because clang leaves the template arguments of functions out of
// their names, by which they are registered.
template <typename M, auto kHook>
struct Hooking {
  // Adds a hook to the part named `part`. Errors name the hook by its function.
  static Future<std::shared_ptr<RemoteHooks>> AddHook(rpc::CallContext& call,
                                                      const RRef<M>& module,
                                                      const std::string& part) {
    return module.With(
        call, rpc::Access::kShared,
        [part](M& local) -> absl::StatusOr<std::shared_ptr<RemoteHooks>> {
          nn::Module* found = local.FindPart(part);
          if (found == nullptr) {
            return absl::NotFoundError(
                absl::StrCat("the module has no part named \"", part, "\""));
          }
          return std::make_shared<RemoteHooks>(
              std::vector{AddTo<kHook>(*found)});
        });
  }
};

template <typename M>
absl::StatusOr<std::unique_ptr<Stage>> MakeStage(
    rpc::CallContext& call, const RRef<M>& module, const StageSpec& spec,
    const std::map<int32_t, RRef<Stage>>& behind,
    const std::optional<RRef<StageLoss>>& loss) {
  ASSIGN_OR_RETURN(auto local, module.LocalValue());
  ASSIGN_OR_RETURN(auto lock, module.LocalLock());
  std::shared_ptr<StageLoss> own;
  if (loss.has_value()) {
    ASSIGN_OR_RETURN(own, loss->LocalValue());
  }
  return Stage::Make(call, std::move(local), std::move(lock), spec, behind,
                     std::move(own));
}

}  // namespace module_calls

}  // namespace baton::dist
