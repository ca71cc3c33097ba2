// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "core/future.h"
#include "rpc/call_options.h"
#include "rpc/methods.h"
#include "rpc/snapshots.h"

// The typed half of every call: it separates options, scope and context from
// the arguments, checks the arguments, waits for those that are Futures,
// encodes them and decodes the result. The other half (agent_core.h) is
// untyped.
namespace baton::rpc::internal {

class AgentCore;
class OutgoingCall;
using CallPtr = std::shared_ptr<OutgoingCall>;

struct CallSpec {
  std::weak_ptr<AgentCore> agent;
  Target to;
  MethodKey method;
  std::string name;       // "Stage::Forward"
  HandlePtr object;       // the object whose method it is; null for a function
  HandlePtr result;       // null unless the result stays at the callee
  bool may_stay = false;  // the callee decides; it returns a ValueOrRRef
  Leading leading{};
};

// Called once, without locks; the decoder is non-null if and only if the status
// is OK. Only if it leaves the decoder failed, which means that it has set no
// result, it is called again, with the error.
using OnReply = absl::AnyInvocable<void(absl::Status, Decoder*)>;

// Begins a call; its timeout runs from now on. Errors are passed to `on_reply`.
CallPtr BeginCall(CallSpec spec, OnReply on_reply);
// Encodes the arguments now and sends them once the owner of each handle in
// them knows that handle.
void SendCall(const CallPtr& call, absl::FunctionRef<void(Encoder&)> encode);
void FailCall(const CallPtr& call, absl::Status why);

// The executor for continuations that are added after the result is set. Null
// once the agent is gone.
std::shared_ptr<Executor> CompletionsOf(const std::weak_ptr<AgentCore>& agent);

// Returns a handle to the result that a call will leave at `to`.
HandlePtr NewResultHandle(const std::weak_ptr<AgentCore>& agent,
                          const Target& to, const ValueType& type);
// Returns the callback to pass to BeginCall for a call with that result handle.
OnReply FinishHandle(HandlePtr handle);
// The outcome of the call for which NewResultHandle made `handle`.
Future<void> CreationOf(const HandlePtr& handle);

// Moves leading options, scopes and contexts to `leading` and calls `fn` with
// the remaining arguments.
template <typename Fn>
auto SplitLeading(Leading&, Fn&& fn) {
  return fn();
}
template <typename Fn, typename First, typename... Rest>
auto SplitLeading(Leading& leading, Fn&& fn, First&& first, Rest&&... rest) {
  if constexpr (kIsLeading<First>) {
    leading.Take(first);
    return SplitLeading(leading, std::forward<Fn>(fn),
                        std::forward<Rest>(rest)...);
  } else {
    return fn(std::forward<First>(first), std::forward<Rest>(rest)...);
  }
}

template <typename P, typename A>
inline constexpr bool kIsPending =
    baton::internal::kIsFuture<std::remove_cvref_t<A>> &&
    !std::is_same_v<P, std::remove_cvref_t<A>>;

// Encodes an argument that is ready. An argument that was moved into the call
// is destroyed here, so that the message has the only handles to its tensors.
template <typename P, typename A>
void EncodeArgument(Encoder& encoder, A&& argument) {
  using Given = std::remove_cvref_t<A>;
  if constexpr (kIsPending<P, A>) {
    EncodeArgument<P>(encoder, *argument.Await(std::chrono::milliseconds(0)));
  } else if constexpr (!std::is_same_v<P, Given>) {
    encoder.Put<P>(P(std::forward<A>(argument)));
  } else if constexpr (std::is_same_v<A, Given>) {
    const P last = std::forward<A>(argument);
    encoder.Put<P>(last);
  } else {
    encoder.Put<P>(argument);
  }
}

// Encodes an argument if it is ready while the call still waits for others.
template <typename P, typename A>
void EncodeIfThere(Encoder& encoder, const A& argument) {
  if constexpr (kIsPending<P, A>) {
    if (!argument.valid() || !argument.ready()) return;
    const auto value = argument.Await(std::chrono::milliseconds(0));
    if (value.ok()) EncodeIfThere<P>(encoder, *value);
  } else if constexpr (std::is_same_v<P, A>) {
    encoder.Put<P>(argument);
  } else if constexpr (std::is_constructible_v<P, const A&>) {
    encoder.Put<P>(P(argument));
  }
}

template <typename A, typename Arrive>
void OnArrival(const A& argument, size_t position, const Arrive& arrive) {
  if constexpr (baton::internal::kIsFuture<A>) {
    if (!argument.valid()) {
      arrive(absl::InvalidArgumentError("an empty Future"), position);
      return;
    }
    argument.OnReady([arrive, position](const auto& result) {
      arrive(baton::internal::StatusOf(result), position);
    });
  } else {
    arrive(absl::OkStatus(), position);
  }
}

template <typename... P, typename... A>
void SendArguments(const CallPtr& call, std::tuple<P...>*, A&&... arguments) {
  if constexpr (!(kIsPending<P, A> || ...)) {
    SendCall(call, [&](Encoder& encoder) {
      (EncodeArgument<P>(encoder, std::forward<A>(arguments)), ...);
    });
  } else {
    struct Gather {
      CallPtr call;
      std::tuple<std::decay_t<A>...> arguments;
      Snapshots snapshots = {};
      std::atomic<size_t> missing{sizeof...(A)};
    };
    std::shared_ptr<Gather> gather(
        new Gather{call, {std::forward<A>(arguments)...}});
    CatchErrors([&] {
      Encoder there;
      std::apply(
          [&](const auto&... argument) {
            (EncodeIfThere<P>(there, argument), ...);
          },
          gather->arguments);
      gather->snapshots.Take(there.tensors());
    }).IgnoreError();  // the call meets the same error later and reports it
    auto arrive = [gather](const absl::Status& status, size_t position) {
      if (!status.ok()) {
        FailCall(gather->call,
                 Annotate(status, absl::StrCat("argument ", position)));
      } else if (--gather->missing == 0) {
        Snapshots::Pins pins;
        SendCall(gather->call, [&](Encoder& encoder) {
          std::apply(
              [&](auto&... argument) {
                (EncodeArgument<P>(encoder, std::move(argument)), ...);
              },
              gather->arguments);
          pins = gather->snapshots.Restore(encoder.tensors());
        });
      }
    };
    size_t position = 0;
    std::apply(
        [&](const auto&... argument) {
          (OnArrival(argument, ++position, arrive), ...);
        },
        gather->arguments);
  }
}

template <typename R>
OnReply SetPromise(Promise<R> promise) {
  return [promise](absl::Status status, Decoder* decoder) {
    if (!status.ok()) {
      promise.Set(std::move(status));
      return;
    }
    auto result = CatchErrors([&]() -> ResultOf<R> {
      if constexpr (std::is_void_v<R>) {
        return decoder->Finish();
      } else {
        R value = decoder->Get<R>();
        RETURN_IF_ERROR(decoder->Finish());
        return value;
      }
    });
    if (result.ok()) {
      promise.Set(std::move(result));
    } else {
      decoder->Fail(baton::internal::StatusOf(result));
    }
  };
}

template <typename... P>
constexpr bool AllEncodable(std::tuple<P...>*) {
  return (Encodable<P> && ...);
}

// Checks the argument types against the parameters `Tuple` and sends the call.
template <typename Tuple, typename... A>
void StartCall(CallSpec spec, OnReply on_reply, A&&... arguments) {
  constexpr bool kMatch = AcceptsAll<Tuple, A...>::kValue;
  static_assert(kMatch, "arguments do not match the remote method");
  if constexpr (kMatch) {
    constexpr bool kTravel = AllEncodable(static_cast<Tuple*>(nullptr));
    static_assert(kTravel,
                  "a parameter of the remote method has no rpc::Codec; list "
                  "its Fields or specialise Codec");
    if constexpr (kTravel) {
      CallPtr call = BeginCall(std::move(spec), std::move(on_reply));
      SendArguments(call, static_cast<Tuple*>(nullptr),
                    std::forward<A>(arguments)...);
    }
  }
}

template <auto kMethod, typename R = ResultType<kMethod>, typename... A>
auto AsyncCall(CallSpec spec, A&&... all) -> Future<R> {
  static_assert(!Pointee<Given<kMethod>>::kIsObject,
                "the method makes an object that stays with its owner: use "
                "rpc::Create or Remote");
  static_assert(std::is_void_v<R> || Encodable<R>,
                "the method's result has no rpc::Codec: use Remote, list its "
                "Fields or specialise Codec");
  Promise<R> promise(CompletionsOf(spec.agent));
  Leading leading;
  SplitLeading(
      leading,
      [&](auto&&... arguments) {
        spec.leading = std::move(leading);
        StartCall<typename Signature<decltype(kMethod)>::Tuple>(
            std::move(spec), SetPromise<R>(promise),
            std::forward<decltype(arguments)>(arguments)...);
      },
      std::forward<A>(all)...);
  return promise.future();
}

template <auto kMethod, typename... A>
HandlePtr RemoteCall(CallSpec spec, A&&... all) {
  using R = ResultType<kMethod>;
  HandlePtr handle = NewResultHandle(spec.agent, spec.to, kValueType<R>);
  spec.result = handle;
  Leading leading;
  SplitLeading(
      leading,
      [&](auto&&... arguments) {
        spec.leading = std::move(leading);
        StartCall<typename Signature<decltype(kMethod)>::Tuple>(
            std::move(spec), FinishHandle(handle),
            std::forward<decltype(arguments)>(arguments)...);
      },
      std::forward<A>(all)...);
  return handle;
}

}  // namespace baton::rpc::internal
