// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/future.h"
#include "rpc/call.h"
#include "rpc/call_options.h"
#include "rpc/ids.h"
#include "rpc/object_lock.h"

namespace baton::rpc {

class Agent;
template <typename T>
struct ValueOrRRef;

namespace internal {

// The untyped implementation of RRef<T> (rref.cc). A null handle is an RRef
// that names nothing.
absl::Status MoveHandle(const HandlePtr& from, const HandlePtr& to);
RRefId IdOf(const HandlePtr& handle);
const WorkerInfo& OwnerOf(const HandlePtr& handle);
bool IsOwner(const HandlePtr& handle);
bool IsConfirmed(const HandlePtr& handle);
void OnOwnerLost(
    const HandlePtr& handle,
    std::function<void(const HandlePtr&, const absl::Status&)> handler);
std::string Describe(const HandlePtr& handle, const std::string& type);
absl::StatusOr<OwnedValue> LocalValueOf(const HandlePtr& handle,
                                        const ValueType& type);
HandlePtr OwnValue(Agent& agent, AnyValue value, Place where);
// Returns the spec of a call of `method` of the object's type, or of a system
// method, whose `type` is kSystemMethods.
CallSpec SpecFor(const HandlePtr& handle, MethodKey method, std::string name);
inline constexpr uint64_t kSystemMethods = 0;
inline constexpr uint32_t kFetch = 0;
inline constexpr uint32_t kReady = 1;

void EncodeHandle(Encoder& encoder, const HandlePtr& handle);
HandlePtr DecodeHandle(Decoder& decoder, const ValueType& type);

template <typename T, auto kMethod>
struct MethodOf {
  using Index = IndexIn<kMethod, T>;
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
// gone. An RRef may be an argument or a result of a call, or a part of one.
// Calls:
//   Future<Tensor> y = stage.Async<&Stage::Forward>(x);
//   RRef<Tensor> z = stage.Remote<&Stage::Forward>(x);   // result stays there
// CallOptions, a scope (dist::Context) or the handler's CallContext may precede
// the arguments. Handles may outlive their agent; all calls then fail.
// Thread-safe.
template <typename T>
class RRef {
 public:
  RRef() = default;  // names nothing; every call fails

  // Makes the worker of `agent` the owner of a local object or value and
  // returns a handle to it.
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

  // Like Async, but a result of more than 64 KiB stays with the owner.
  template <auto kMethod, typename... Args>
  auto AsyncOrRemote(Args&&... args) const {
    using M = internal::MethodOf<T, kMethod>;
    internal::CallSpec spec = internal::SpecFor(handle_, M::kKey, M::Name());
    spec.may_stay = true;
    return internal::AsyncCall<kMethod,
                               ValueOrRRef<internal::ResultType<kMethod>>>(
        std::move(spec), std::forward<Args>(args)...);
  }

  // Copies the value here once it exists.
  template <typename... Before>
  Future<T> Fetch(Before&&... before) const {
    static_assert(Encodable<T>,
                  "the value has no rpc::Codec and cannot leave its owner");
    return System<T>(internal::kFetch, "Fetch",
                     std::forward<Before>(before)...);
  }

  // Ready when the value exists; fails with the error of its creation.
  template <typename... Before>
  Future<void> Ready(Before&&... before) const {
    return System<void>(internal::kReady, "Ready",
                        std::forward<Before>(before)...);
  }

  // Returns the object itself, at the owner only; elsewhere returns
  // FailedPrecondition, which names the owner. Returns Unavailable while the
  // object is being made, and the error if its creation failed. Calls may use
  // the object at the same time: see With.
  absl::StatusOr<std::shared_ptr<T>> LocalValue() const {
    auto local = internal::LocalValueOf(handle_, internal::kValueType<T>);
    if (!local.ok()) return local.status();
    return std::static_pointer_cast<T>(local->value.value);
  }
  // The lock that serializes calls of the object. Errors as for LocalValue.
  absl::StatusOr<std::shared_ptr<ObjectLock>> LocalLock() const {
    auto local = internal::LocalValueOf(handle_, internal::kValueType<T>);
    if (!local.ok()) return local.status();
    return local->lock;
  }

  // For functions that take an RRef: calls `fn(object)` once it may use the
  // object, as a const method would (kShared) or as any other (kExclusive).
  // Returns a future of what `fn` returns: a value, a Status, a StatusOr or a
  // Future. The object is released when `fn` returns, even if its Future is not
  // ready. Errors as for LocalValue and HoldObjects.
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

  // Makes this RRef and all its copies in this process refer to `successor`
  // from now on. It is meant for code that recreates an object after its owner
  // is lost. Calls under way and handles in other processes are not affected.
  // Returns InvalidArgument if either names nothing or both are the same
  // handle.
  absl::Status MoveTo(const RRef& successor) const {
    return internal::MoveHandle(handle_, successor.handle_);
  }

  // Calls `handler(lost, cause)` once if the object's owner is lost: if its
  // worker dies, is silent for its lease, leaves, is removed, is started again,
  // or gives this worker up, and if the creation finds it unreachable. If it is
  // lost already, at once. `lost` is this RRef; `cause` is Unavailable and
  // names the worker. Several handlers of one RRef are called in turn.
  //
  // The handler runs on a thread of the agent's pool, without locks. It may
  // call and wait, make the object anew at another worker or at a successor,
  // and drop or move (MoveTo) its RRef. It must not throw. It is not called for
  // another error of the creation, at the owner itself, once the last copy of
  // this RRef in this process is gone, or once this agent shuts down. It goes
  // with that copy, so it must not own one: use `lost`.
  template <typename Handler>
  void OnOwnerLost(Handler handler) const {
    internal::OnOwnerLost(
        handle_, [handler = std::move(handler)](const internal::HandlePtr& lost,
                                                const absl::Status& cause) {
          handler(RRef(lost), cause);
        });
  }

  bool valid() const { return handle_ != nullptr; }
  RRefId id() const { return internal::IdOf(handle_); }
  const WorkerInfo& owner() const { return internal::OwnerOf(handle_); }
  bool is_owner() const { return internal::IsOwner(handle_); }
  // True if the owner knows of this handle, as it does for every handle that a
  // handler receives.
  bool confirmed() const { return internal::IsConfirmed(handle_); }

  // "RRef<Stage>(5 of 3f9c, owner bob)".
  std::string ToString() const {
    return internal::Describe(handle_, internal::TypeName<T>());
  }

  // RRefs are equal if they name the same object.
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

// The result of AsyncOrRemote.
template <typename T>
struct ValueOrRRef {
  std::optional<T> value;
  RRef<T> rref;  // set if there is no value

  template <typename... Before>
  Future<T> Fetch(Before&&... before) const {
    if (value.has_value()) return ReadyFuture<T>(*value);
    return rref.Fetch(std::forward<Before>(before)...);
  }
};

// Matches what the callee writes (incoming.cc).
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
