// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "core/device.h"
#include "core/future.h"
#include "rpc/call_context.h"
#include "rpc/codec.h"
#include "rpc/exports.h"
#include "rpc/held_bytes.h"
#include "rpc/object_lock.h"
#include "rpc/type_name.h"

// The templates behind exported methods: they analyze signatures, check a
// call's arguments against them and run methods at the owner.
namespace baton::rpc::internal {

// A class or function, as a hash of its name, and the index of a method in it.
struct MethodKey {
  uint64_t type = 0;
  uint32_t index = 0;
  friend auto operator<=>(const MethodKey&, const MethodKey&) = default;
};

// Describes a type of value that an owner may keep: how to name and encode it.
struct ValueType {
  uint64_t id;
  std::string (*name)();
  void (*encode)(Encoder&, const void*);    // null: it cannot be sent
  int64_t (*bytes)(const void*) = nullptr;  // null: unknown (held_bytes.h)
};

template <typename T>
constexpr auto EncoderOf() -> void (*)(Encoder&, const void*) {
  if constexpr (Encodable<T>) {
    return [](Encoder& encoder, const void* value) {
      encoder.Put(*static_cast<const T*>(value));
    };
  } else {
    return nullptr;
  }
}

template <typename T>
int64_t BytesHeldBy(const void* value) {
  return HeldBytesOf(*static_cast<const T*>(value));
}

template <typename T>
inline constexpr ValueType kValueType{TypeId<T>(), &TypeName<T>, EncoderOf<T>(),
                                      &BytesHeldBy<T>};
template <>
inline constexpr ValueType kValueType<void>{TypeId<void>(), &TypeName<void>,
                                            [](Encoder&, const void*) {}};

// A value of any exported type: the result of a handler, or a value that an
// owner keeps.
struct AnyValue {
  std::shared_ptr<void> value;
  const ValueType* type = &kValueType<void>;
};

// A value that this worker owns and, if it is an object, its lock, which all
// RRefs to it share.
struct OwnedValue {
  AnyValue value;
  std::shared_ptr<ObjectLock> lock;
};

using Reply = std::function<void(absl::StatusOr<AnyValue>)>;
// Decodes the arguments, calls the method and replies exactly once, perhaps
// after it has returned.
using Handler = void (*)(CallContext& call, Decoder& arguments, void* object,
                         Reply reply);

template <typename... P>
struct Parameters {
  using Tuple = std::tuple<std::decay_t<P>...>;
  static constexpr bool kTakesContext = false;
};
template <typename... P>
struct Parameters<CallContext&, P...> : Parameters<P...> {
  static constexpr bool kTakesContext = true;
};

template <typename R, typename C, typename... P>
struct SignatureOf {
  using Return = R;
  using Class = C;  // void for a function
  using Tuple = typename Parameters<P...>::Tuple;
  static constexpr bool kTakesContext = Parameters<P...>::kTakesContext;
  static constexpr Access kAccess = Access::kExclusive;
};

template <typename F>
struct Signature;
#define BATON_SIGNATURE(access, qualifiers)                               \
  template <typename R, typename C, typename... P>                        \
  struct Signature<R (C::*)(P...) qualifiers> : SignatureOf<R, C, P...> { \
    static constexpr Access kAccess = Access::access;                     \
  }
BATON_SIGNATURE(kExclusive, );
BATON_SIGNATURE(kShared, const);
BATON_SIGNATURE(kExclusive, noexcept);
BATON_SIGNATURE(kShared, const noexcept);
#undef BATON_SIGNATURE
template <typename R, typename... P>
struct Signature<R (*)(P...)> : SignatureOf<R, void, P...> {};
template <typename R, typename... P>
struct Signature<R (*)(P...) noexcept> : SignatureOf<R, void, P...> {};

// T for unique_ptr<T> and shared_ptr<T>, which return an object that stays with
// its owner.
template <typename T>
struct Pointee {
  using Type = T;
  static constexpr bool kIsObject = false;
};
template <typename T>
struct Pointee<std::unique_ptr<T>> {
  using Type = T;
  static constexpr bool kIsObject = true;
};
template <typename T>
struct Pointee<std::shared_ptr<T>> : Pointee<std::unique_ptr<T>> {};

// The type that a caller gets: T for T, const T&, StatusOr<T> and Future<T>;
// void for void, Status and Future<void>; the class for a factory.
template <auto kMethod>
using Given = typename baton::internal::Unwrapped<
    std::remove_cvref_t<typename Signature<decltype(kMethod)>::Return>>::Type;
template <auto kMethod>
using ResultType = typename Pointee<Given<kMethod>>::Type;

// A class whose objects tell their device and, optionally, their dtype.
template <typename T>
concept HasDevice = requires(const T& object) {
  { object.device() } -> std::same_as<Device>;
  { object.dtype() } -> std::same_as<std::optional<DType>>;
};

// Whether A is accepted for a parameter P: A, or its value if it is a Future,
// converts to P.
template <typename P, typename A>
struct Accepts {
  static constexpr bool kValue = std::is_convertible_v<A, P>;
};
template <typename P, typename Y>
struct Accepts<P, Future<Y>> {
  static constexpr bool kValue =
      std::is_same_v<P, Future<Y>> || std::is_convertible_v<Y, P>;
};

template <typename Tuple, typename... A>
struct AcceptsAll {
  static constexpr bool kValue = false;
};
template <typename... P, typename... A>
requires(sizeof...(P) ==
         sizeof...(A)) struct AcceptsAll<std::tuple<P...>, A...> {
  static constexpr bool kValue =
      (Accepts<P, std::remove_cvref_t<A>>::kValue && ...);
};

template <typename R>
AnyValue ToAny(R value) {
  if constexpr (Pointee<R>::kIsObject) {
    using T = typename Pointee<R>::Type;
    return {std::shared_ptr<T>(std::move(value)), &kValueType<T>};
  } else {
    return {std::make_shared<R>(std::move(value)), &kValueType<R>};
  }
}

// Turns whatever `call` returns into one reply.
template <typename Call>
void ReplyFrom(Call call, const Reply& reply) {
  using Raw = decltype(call());
  using R = std::remove_cvref_t<Raw>;
  if constexpr (baton::internal::kIsFuture<R>) {
    using U = typename R::Value;
    const auto reply_with = [reply](auto&& result) {
      if constexpr (std::is_void_v<U>) {
        reply(result.ok() ? absl::StatusOr<AnyValue>(AnyValue{})
                          : absl::StatusOr<AnyValue>(result));
      } else if (result.ok()) {
        reply(ToAny<U>(*std::forward<decltype(result)>(result)));
      } else {
        reply(result.status());
      }
    };
    R future = call();
    // If nothing else refers to the result, move it into the reply, so that the
    // reply has the only handle to its tensors.
    if (auto taken = std::move(future).TakeIfAlone()) {
      reply_with(*std::move(taken));
    } else {
      // NOLINTNEXTLINE(bugprone-use-after-move): nothing was taken
      future.OnReady(
          [reply_with](const ResultOf<U>& result) { reply_with(result); });
    }
  } else if constexpr (std::is_void_v<Raw>) {
    call();
    reply(AnyValue{});
  } else if constexpr (std::is_same_v<R, absl::Status>) {
    absl::Status status = call();
    if (status.ok()) {
      reply(AnyValue{});
    } else {
      reply(std::move(status));
    }
  } else if constexpr (std::is_same_v<
                           R,
                           absl::StatusOr<
                               typename baton::internal::Unwrapped<R>::Type>>) {
    R result = call();
    if (result.ok()) {
      reply(ToAny(*std::move(result)));
    } else {
      reply(std::move(result).status());
    }
  } else {
    reply(ToAny<R>(call()));
  }
}

// The function to run when a worker calls kMethod of a T: T::CalledAs if it
// exists, else kMethod itself.
template <typename T, auto kMethod>
constexpr auto Called() {
  if constexpr (requires { T::template CalledAs<T, kMethod>(); }) {
    return T::template CalledAs<T, kMethod>();
  } else {
    return kMethod;
  }
}

// The Handler of a method of T, or of a free or static function, with T = void.
template <typename T, auto kMethod>
void Invoke(CallContext& context, Decoder& arguments, void* object,
            Reply reply) {
  using S = Signature<decltype(kMethod)>;
  using Tuple = typename S::Tuple;
  try {
    if constexpr (HasDevice<T>) {
      if (object != nullptr) {
        arguments.set_device(static_cast<const T*>(object)->device());
        arguments.set_dtype(static_cast<const T*>(object)->dtype());
      }
    }
    Tuple values = [&]<typename... P>(std::tuple<P...>*) {
      return Tuple{arguments.Get<P>()...};  // braces: left to right
    }(static_cast<Tuple*>(nullptr));
    if (absl::Status status = arguments.Finish(); !status.ok()) {
      reply(std::move(status));
      return;
    }
    auto call = [&](auto&&... given) -> decltype(auto) {
      if constexpr (std::is_void_v<typename S::Class>) {
        return kMethod(std::forward<decltype(given)>(given)...);
      } else {
        return (static_cast<T*>(object)->*kMethod)(
            std::forward<decltype(given)>(given)...);
      }
    };
    ReplyFrom(
        [&]() -> decltype(auto) {
          return std::apply(
              [&](auto&... value) -> decltype(auto) {
                if constexpr (S::kTakesContext) {
                  return call(context, std::move(value)...);
                } else {
                  return call(std::move(value)...);
                }
              },
              values);
        },
        reply);
  } catch (...) {
    reply(StatusFromCurrentException());
  }
}

}  // namespace baton::rpc::internal
