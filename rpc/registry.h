// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/methods.h"

namespace baton::rpc {

// The methods and functions that other workers may call here; nothing else can
// be called remotely. Filled in main and passed to Agent::Start:
//   rpc::Registry registry;
//   registry.Add<Stage>();
//   registry.AddFunction<&LoadWeights>();
// All workers of a cluster must register the same things, in any order: their
// digests are compared when they connect. Thread-compatible.
class Registry {
 public:
  struct Method {
    std::string name;       // "Stage::Forward"
    std::string signature;  // as the compiler spells it
    internal::Handler handler = nullptr;
    bool needs_object = false;
    Access access = Access::kExclusive;  // access to the object
  };

  // Adds the methods of T::Exports.
  template <typename T>
  Registry& Add() {
    static_assert(internal::HasExports<T>,
                  "the class lists no exported methods: add "
                  "`using Exports = rpc::Methods<&T::Method, ...>;`");
    AddType(internal::TypeId<T>(), internal::TypeName<T>(),
            MethodsOf<T>(static_cast<typename T::Exports*>(nullptr)));
    return *this;
  }

  // Adds a free or static function.
  template <auto kFunction>
  Registry& AddFunction() {
    static_assert(std::is_void_v<
                      typename internal::Signature<decltype(kFunction)>::Class>,
                  "AddFunction takes a free or static function");
    AddType(internal::FunctionId<kFunction>(),
            internal::FunctionName<kFunction>(),
            {MethodOf<void, kFunction>(internal::FunctionName<kFunction>(),
                                       Access::kShared)});
    return *this;
  }

  // The first error so far: AlreadyExists names what was registered twice.
  // Agent::Start refuses a registry that is not OK.
  const absl::Status& status() const { return status_; }

  // Equal for registries with the same contents.
  uint64_t Digest() const;

  // The digest and the name of each type and function. Types with equal digests
  // have the same methods.
  std::map<uint64_t, std::string> Exports() const;

  // Returns Unimplemented if there is no such method.
  absl::StatusOr<const Method*> Find(internal::MethodKey key) const;
  std::vector<std::string> MethodNames() const;

 private:
  struct Type {
    std::string name;
    std::vector<Method> methods;
  };

  template <typename T, auto kMethod>
  static Method MethodOf(std::string name, Access access) {
    return {
        std::move(name),
        std::string(internal::FullTypeName<decltype(kMethod)>()),
        &internal::Invoke<T, internal::Called<T, kMethod>()>,
        !std::is_void_v<typename internal::Signature<decltype(kMethod)>::Class>,
        access};
  }
  template <typename T, typename Listed>
  static Method ListedMethodOf() {
    constexpr auto kMethod = Listed::kMethod;
    using Signature =
        internal::Signature<std::remove_const_t<decltype(kMethod)>>;
    return MethodOf<T, kMethod>(
        internal::TypeName<T>() + "::" + internal::FunctionName<kMethod>(),
        Listed::kIsConcurrent ? Access::kShared : Signature::kAccess);
  }
  template <typename T, auto... kEntries>
  static std::vector<Method> MethodsOf(Methods<kEntries...>*) {
    return {ListedMethodOf<T, internal::Listed<T, kEntries>>()...};
  }
  static uint64_t DigestOf(uint64_t id, const Type& type, uint64_t seed);
  void AddType(uint64_t id, std::string name, std::vector<Method> methods);

  std::map<uint64_t, Type> types_;
  absl::Status status_;
};

}  // namespace baton::rpc
