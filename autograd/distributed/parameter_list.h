// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "autograd/distributed/codec_variable.h"
#include "rpc/agent.h"
#include "rpc/unregistered.h"

namespace baton::dist {

// Selects parameters of an object by name: those whose names contain one of
// `only`, if it is not empty, and none of `except`.
struct ParameterFilter {
  std::vector<std::string> only, except;

  bool Takes(const std::string& name) const {
    const auto contains = [&](const std::string& part) {
      return name.find(part) != std::string::npos;
    };
    return (only.empty() || std::any_of(only.begin(), only.end(), contains)) &&
           std::none_of(except.begin(), except.end(), contains);
  }
  static constexpr auto Fields() {
    return std::tuple{&ParameterFilter::only, &ParameterFilter::except};
  }
};

// Parameters of one object, at the worker that has them, and the object's lock.
// Never leaves the worker. Immutable.
struct ParameterList {
  std::vector<Variable> parameters;
  std::vector<std::string> names;  // within the object
  std::shared_ptr<rpc::ObjectLock> lock;
};

// Parameters of an object without names are called 0, 1, ...
template <typename M>
void AddParameters(M& object, const ParameterFilter& filter,
                   ParameterList& list) {
  const auto add = [&](const std::string& name, const Variable& parameter) {
    if (!filter.Takes(name)) return;
    list.names.push_back(name);
    list.parameters.push_back(parameter);
  };
  if constexpr (std::is_same_v<M, Variable>) {
    add("0", object);
  } else if constexpr (requires { object.NamedParameters(); }) {
    for (const auto& [name, parameter] : object.NamedParameters())
      add(name, parameter);
  } else {
    int number = 0;
    for (const Variable& parameter : object.Parameters())
      add(absl::StrCat(number++), parameter);
  }
}

// An optimizer calls this at the owner of `object`. M has NamedParameters(), as
// nn::Module does, or Parameters(), or is Variable. Registered by
// dist::RegisterParameters<M>.
template <typename M>
Future<std::shared_ptr<ParameterList>> ListParameters(
    rpc::CallContext& call, const RRef<M>& object,
    const ParameterFilter& filter) {
  auto lock = object.LocalLock();
  if (!lock.ok()) {
    return ReadyFuture<std::shared_ptr<ParameterList>>(lock.status());
  }
  return object.With(call, rpc::Access::kShared,
                     [lock = *lock, filter](M& local) {
                       auto list = std::make_shared<ParameterList>();
                       AddParameters(local, filter, *list);
                       list->lock = lock;
                       return list;
                     });
}

template <typename M>
void RegisterParameters(rpc::Registry& registry) {
  registry.AddFunction<&ListParameters<M>>();
}

// Refers to the parameters of a remote object: all, or some by their names.
//
//   ParameterSource(front.ref()).Except({"bias", "norm"})
class ParameterSource {
 public:
  template <typename M>
  // NOLINTNEXTLINE(google-explicit-constructor): a handle is such a source
  ParameterSource(const RRef<M>& object)
      : owner_([object]() -> const rpc::WorkerInfo& { return object.owner(); }),
        list_([object](rpc::Agent& agent, const ParameterFilter& filter) {
          return agent.Remote<&ListParameters<M>>(object.owner(), object,
                                                  filter);
        }),
        type_(&rpc::internal::TypeName<M>) {}

  // Only selects parameters whose names contain one of the parts; Except those
  // whose names contain none.
  ParameterSource Only(std::vector<std::string> parts) const {
    ParameterSource some = *this;
    some.filter_.only = std::move(parts);
    return some;
  }
  ParameterSource Except(std::vector<std::string> parts) const {
    ParameterSource some = *this;
    some.filter_.except = std::move(parts);
    return some;
  }
  // Sets the object's name in saved states, which otherwise is its number among
  // the sources. Empty: its parameters are saved by their own names, which must
  // be unique among all sources.
  ParameterSource Named(std::string name) const {
    ParameterSource named = *this;
    named.name_ = std::move(name);
    return named;
  }

  const rpc::WorkerInfo& owner() const { return owner_(); }
  const std::optional<std::string>& name() const { return name_; }
  // The list at the owner. It may not exist yet; Listed waits for it.
  RRef<ParameterList> List(rpc::Agent& agent) const {
    return list_(agent, filter_);
  }
  Future<RRef<ParameterList>> Listed(rpc::Agent& agent) const {
    return Made(List(agent));
  }
  // Returns `list`, which List returned, once it exists. If M was not
  // registered, the error has the line to add.
  Future<RRef<ParameterList>> Made(const RRef<ParameterList>& list) const {
    const std::string type = type_();
    return rpc::OrNameMissing(list.Ready().Then([list] { return list; }),
                              absl::StrCat("parameters of ", type),
                              absl::StrCat("call dist::RegisterParameters<",
                                           type, ">(registry) before joining"));
  }

 private:
  // A function because the object may move.
  std::function<const rpc::WorkerInfo&()> owner_;
  std::function<RRef<ParameterList>(rpc::Agent&, const ParameterFilter&)> list_;
  std::string (*type_)();  // for errors
  ParameterFilter filter_;
  std::optional<std::string> name_;
};

}  // namespace baton::dist
