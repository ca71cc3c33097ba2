// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

// How a class lists what other workers may do with it.
namespace baton::rpc {

// The methods of a class that other workers may call:
//   using Exports = rpc::Methods<&Stage::Make, &Stage::Forward>;
// A static factory Make among them, which returns StatusOr<unique_ptr<Stage>>
// or shared_ptr<Stage>, makes objects for other workers (rpc::Create). A
// constructor (kConstructor) can be listed in its place.
//
// Calls of one object run one at a time, except that calls of const methods and
// of methods listed as kConcurrent run beside each other. A call holds its
// object until the handler returns, even if the handler returns a Future that
// is not ready. Calls that a handler makes may come back to its object
// (docs/thread_model.md). If the class has device() and dtype() (HasDevice), as
// nn::Module has, argument tensors are moved to that device and Variables are
// cast to that dtype.
template <auto... kMethods>
struct Methods {
  static constexpr size_t kCount = sizeof...(kMethods);
};

// Lists a method that is not const but may run beside others of its object,
// because it has locks of its own or waits for another call of the same object:
//   using Exports = rpc::Methods<&Queue::Make, rpc::kConcurrent<&Queue::Pop>,
//                                rpc::kConcurrent<&Queue::Push>>;
template <auto kMethod>
struct ConcurrentMethod {};
template <auto kMethod>
inline constexpr ConcurrentMethod<kMethod> kConcurrent{};

// Lists a public constructor by the types of its parameters:
//   using Exports = rpc::Methods<rpc::kConstructor<uint64_t, int64_t>,
//                                &Stage::Forward>;
// What it throws becomes the status of the call.
template <typename... P>
struct Constructor {};
template <typename... P>
inline constexpr Constructor<P...> kConstructor{};

namespace internal {

template <typename T>
concept HasExports = requires {
  typename T::Exports;
};

// The factory that stands for a constructor of T.
template <typename T, typename... P>
struct ByConstructor {
  static std::unique_ptr<T> Make(P... arguments) {
    static_assert(std::is_constructible_v<T, P...>,
                  "kConstructor lists parameters that no public constructor of "
                  "the class takes");
    return std::make_unique<T>(std::forward<P>(arguments)...);
  }
};

// One entry of T's list of Methods.
template <typename T, auto kEntry,
          typename = std::remove_cv_t<decltype(kEntry)>>
struct Listed {
  static constexpr auto kMethod = kEntry;
  static constexpr bool kIsConcurrent = false;
  static constexpr bool kIsConstructor = false;
};
template <typename T, auto kEntry, auto kInner>
struct Listed<T, kEntry, ConcurrentMethod<kInner>> {
  static constexpr auto kMethod = kInner;
  static constexpr bool kIsConcurrent = true;
  static constexpr bool kIsConstructor = false;
};
template <typename T, auto kEntry, typename... P>
struct Listed<T, kEntry, Constructor<P...>> {
  static constexpr auto kMethod = &ByConstructor<T, P...>::Make;
  static constexpr bool kIsConcurrent = false;
  static constexpr bool kIsConstructor = true;
};

// The function that makes a T for other workers: the factory of the constructor
// that is listed, or T::Make; null if there is neither.
template <typename T>
constexpr auto MakerIn(Methods<>*) {
  if constexpr (requires { &T::Make; }) {
    return &T::Make;
  } else {
    return nullptr;
  }
}
template <typename T, auto kFirst, auto... kRest>
constexpr auto MakerIn(Methods<kFirst, kRest...>*) {
  if constexpr (Listed<T, kFirst>::kIsConstructor) {
    return Listed<T, kFirst>::kMethod;
  } else {
    return MakerIn<T>(static_cast<Methods<kRest...>*>(nullptr));
  }
}
template <typename T>
constexpr auto MakerOf() {
  if constexpr (HasExports<T>) {
    return MakerIn<T>(static_cast<typename T::Exports*>(nullptr));
  } else {
    return MakerIn<T>(static_cast<Methods<>*>(nullptr));
  }
}
template <typename T>
concept CanBeMade = !std::is_null_pointer_v<decltype(MakerOf<T>())>;

template <auto kA, auto kB>
inline constexpr bool kSameMethod =
    std::is_same_v<std::integral_constant<decltype(kA), kA>,
                   std::integral_constant<decltype(kB), kB>>;

// The index of a method in T's list, or the list's length if it is not in it.
template <auto kMethod, typename T, typename List = typename T::Exports>
struct IndexIn;
template <auto kMethod, typename T, auto... kAll>
struct IndexIn<kMethod, T, Methods<kAll...>> {
  static constexpr uint32_t kIndex = [] {
    uint32_t index = 0;
    (void)((kSameMethod<kMethod, Listed<T, kAll>::kMethod> ||
            (++index, false)) ||
           ...);
    return index;
  }();
  static constexpr bool kFound = kIndex < sizeof...(kAll);
};

}  // namespace internal
}  // namespace baton::rpc
