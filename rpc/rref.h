// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/future.h"
#include "rpc/call.h"
#include "rpc/ids.h"
#include "rpc/object_hold.h"
#include "rpc/place.h"

namespace baton::rpc {

class Agent;
template <typename T>
struct ValueOrRRef;

namespace internal {

// What the methods of RRef<T> do, without T (rref.cc). A null handle is an
// RRef that names nothing.
absl::Status MoveHandle(const HandlePtr& from, const HandlePtr& to);
RRefId IdOf(const HandlePtr& handle);
const WorkerInfo& OwnerOf(const HandlePtr& handle);
bool IsOwner(const HandlePtr& handle);
bool IsConfirmed(const HandlePtr& handle);
std::string Describe(const HandlePtr& handle, const std::string& type);
absl::StatusOr<OwnedValue> LocalValueOf(const HandlePtr& handle,
                                        const ValueType& type);
HandlePtr OwnValue(Agent& agent, AnyValue value, Place where);
// A call of method `index` of the object's type, or, for a system method, of
// kSystemMethods.
CallSpec SpecFor(const HandlePtr& handle, MethodKey method, std::string name);
inline constexpr uint64_t kSystemMethods = 0;
inline constexpr uint32_t kFetch = 0;
inline constexpr uint32_t kReady = 1;

void EncodeHandle(Encoder& encoder, const HandlePtr& handle);
HandlePtr DecodeHandle(Decoder& decoder, const ValueType& type);

template <typename T, auto kMethod>
struct MethodOf {
  using Index = IndexIn<kMethod, typename T::Exports>;
  static_assert(Index::kFound, "the method is not in the class's Exports");
  static_assert(
      !std::is_void_v<typename Signature<decltype(kMethod)>::Class>,
      "a static function has no object: register it with AddFunction and use "
      "agent.Async<&T::Function>(worker, ...)");
  static constexpr MethodKey kKey{TypeId<T>(), Index::kIndex};
  static std::string Name() {
    return TypeName<T>() + "::" + FunctionName<kMethod>();
  }
};

}  // namespace internal

// A handle to an object or value that lives at one worker, its owner. Copies
// share one grant; the object lives until the last handle in the cluster is
// gone. May be an argument, a result, and part of either. Calls:
//   Future<Tensor> y = stage.Async<&Stage::Forward>(x);
//   RRef<Tensor> z = stage.Remote<&Stage::Forward>(x);   // result stays there
// Each may be preceded by CallOptions, a scope (dist::Context) or the handler's
// CallContext. Handles may outlive their agent: then all calls fail.
// Thread-safe.
template <typename T>
class RRef {
 public:
  RRef() = default;  // names nothing; every call fails

  // A handle to a local object or value, which `agent`'s worker then owns.
  static RRef Make(Agent& agent, std::shared_ptr<T> object,
                   Place where = Place::Here()) {
    return RRef(internal::OwnValue(
        agent, {std::move(object), &internal::kValueType<T>}, where));
  }
  template <std::convertible_to<T> U>
  requires(!std::convertible_to<U, std::shared_ptr<T>>) static RRef
      Make(Agent& agent, U&& value, Place where = Place::Here()) {
    return Make(agent, std::make_shared<T>(std::forward<U>(value)), where);
  }

  template <auto kMethod, typename... Args>
  auto Async(Args&&... args) const {
    using M = internal::MethodOf<T, kMethod>;
    return internal::AsyncCall<kMethod>(
        internal::SpecFor(handle_, M::kKey, M::Name()),
        std::forward<Args>(args)...);
  }

  template <auto kMethod, typename... Args>
  auto Remote(Args&&... args) const -> RRef<internal::ResultType<kMethod>> {
    using M = internal::MethodOf<T, kMethod>;
    return RRef<internal::ResultType<kMethod>>(internal::RemoteCall<kMethod>(
        internal::SpecFor(handle_, M::kKey, M::Name()),
        std::forward<Args>(args)...));
  }

  // As Async; but a result of more than 64 KiB stays with the owner.
  template <auto kMethod, typename... Args>
  auto AsyncOrRemote(Args&&... args) const {
    using M = internal::MethodOf<T, kMethod>;
    internal::CallSpec spec = internal::SpecFor(handle_, M::kKey, M::Name());
    spec.may_stay = true;
    return internal::AsyncCall<kMethod,
                               ValueOrRRef<internal::ResultType<kMethod>>>(
        std::move(spec), std::forward<Args>(args)...);
  }

  // A copy of the value, once it is there.
  template <typename... Before>
  Future<T> Fetch(Before&&... before) const {
    static_assert(Encodable<T>,
                  "the value has no rpc::Codec and cannot leave its owner");
    return System<T>(internal::kFetch, "Fetch",
                     std::forward<Before>(before)...);
  }

  // Done when the value is there; fails as its creation failed.
  template <typename... Before>
  Future<void> Ready(Before&&... before) const {
    return System<void>(internal::kReady, "Ready",
                        std::forward<Before>(before)...);
  }

  // The object itself. Owner only: elsewhere FailedPrecondition names the
  // owner. Unavailable while it is being made; its failure once that failed.
  // Calls may use it meanwhile: see With.
  absl::StatusOr<std::shared_ptr<T>> LocalValue() const {
    auto local = internal::LocalValueOf(handle_, internal::kValueType<T>);
    if (!local.ok()) return local.status();
    return std::static_pointer_cast<T>(local->value.value);
  }
  // What keeps calls of the object apart; errors as LocalValue.
  absl::StatusOr<std::shared_ptr<ObjectLock>> LocalLock() const {
    auto local = internal::LocalValueOf(handle_, internal::kValueType<T>);
    if (!local.ok()) return local.status();
    return local->lock;
  }

  // For functions that are given an RRef: calls `fn(object)` once its turn has
  // come, as that of a const method would be (kShared) or of another one. Gives
  // the future of what `fn` gives: a value, a Status, a StatusOr or a Future,
  // which the object does not wait for. Errors as LocalValue and HoldObjects.
  template <typename Fn>
  auto With(const CallContext& call, Access access, Fn fn) const {
    using U = typename baton::internal::Unwrapped<
        std::remove_cvref_t<std::invoke_result_t<Fn&, T&>>>::Type;
    auto local = internal::LocalValueOf(handle_, internal::kValueType<T>);
    if (!local.ok()) return ReadyFuture<U>(local.status());
    return WithObjects(
        call, {local->lock}, access,
        [object = std::static_pointer_cast<T>(local->value.value),
         fn = std::move(fn)]() mutable { return fn(*object); });
  }

  // This and all its copies in this process, those in other objects too, stand
  // for `successor` from now on, whatever becomes of what they named: for
  // whoever makes an object anew after its owner is lost. Calls under way end
  // as they would have; handles of other processes stay what they are.
  // InvalidArgument where one of the two names nothing, or both name one
  // handle.
  absl::Status MoveTo(const RRef& successor) const {
    return internal::MoveHandle(handle_, successor.handle_);
  }

  bool valid() const { return handle_ != nullptr; }
  RRefId id() const { return internal::IdOf(handle_); }
  const WorkerInfo& owner() const { return internal::OwnerOf(handle_); }
  bool is_owner() const { return internal::IsOwner(handle_); }
  // The owner knows of this handle. Handles that a handler is given always are.
  bool confirmed() const { return internal::IsConfirmed(handle_); }

  // "RRef<Stage>(5 of 3f9c, owner bob)".
  std::string ToString() const {
    return internal::Describe(handle_, internal::TypeName<T>());
  }

  // Handles to one object are equal.
  friend bool operator==(const RRef& a, const RRef& b) {
    return a.id() == b.id();
  }

  explicit RRef(internal::HandlePtr handle) : handle_(std::move(handle)) {}
  const internal::HandlePtr& handle() const { return handle_; }

 private:
  template <typename R, typename... Before>
  Future<R> System(uint32_t index, const char* name, Before&&... before) const {
    internal::CallSpec spec = internal::SpecFor(
        handle_, {internal::kSystemMethods, index},
        absl::StrCat("RRef<", internal::TypeName<T>(), ">::", name));
    Promise<R> promise(internal::CompletionsOf(spec.agent));
    static_assert((internal::kIsLeading<Before> && ...),
                  "only CallOptions, a scope or a CallContext may stand here");
    (spec.leading.Take(before), ...);
    internal::StartCall<std::tuple<>>(std::move(spec),
                                      internal::SetPromise<R>(promise));
    return promise.future();
  }

  internal::HandlePtr handle_;
};

template <typename T>
struct Codec<RRef<T>> {
  static void Encode(Encoder& encoder, const RRef<T>& rref) {
    internal::EncodeHandle(encoder, rref.handle());
  }
  static RRef<T> Decode(Decoder& decoder) {
    return RRef<T>(internal::DecodeHandle(decoder, internal::kValueType<T>));
  }
};

// What AsyncOrRemote gives.
template <typename T>
struct ValueOrRRef {
  std::optional<T> value;
  RRef<T> rref;  // where there is no value

  template <typename... Before>
  Future<T> Fetch(Before&&... before) const {
    if (value.has_value()) return ReadyFuture<T>(*value);
    return rref.Fetch(std::forward<Before>(before)...);
  }
};

// As the callee writes it (incoming.cc).
template <typename T>
struct Codec<ValueOrRRef<T>> {
  static void Encode(Encoder& encoder, const ValueOrRRef<T>& result) {
    encoder.Put(!result.value.has_value());
    if (result.value.has_value()) {
      encoder.Put(*result.value);
    } else {
      encoder.Put(result.rref);
    }
  }
  static ValueOrRRef<T> Decode(Decoder& decoder) {
    ValueOrRRef<T> result;
    if (decoder.Get<bool>()) {
      result.rref = decoder.Get<RRef<T>>();
    } else {
      result.value = decoder.Get<T>();
    }
    return result;
  }
};

}  // namespace baton::rpc

namespace baton {
using rpc::RRef;
}  // namespace baton

template <typename T>
struct std::hash<baton::rpc::RRef<T>> {
  size_t operator()(const baton::rpc::RRef<T>& rref) const {
    return std::hash<baton::rpc::RRefId>()(rref.id());
  }
};
