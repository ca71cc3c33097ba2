// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/executor.h"
#include "core/mutex.h"
#include "core/spinning.h"
#include "core/status.h"

namespace baton {

template <typename T>
class Future;
template <typename T>
class Promise;

// StatusOr<T>, or Status if T is void.
template <typename T>
using ResultOf = std::conditional_t<
    std::is_void_v<T>, absl::Status,
    absl::StatusOr<std::conditional_t<std::is_void_v<T>, int, T>>>;

// How long Await waits when the caller names no limit of its own.
inline constexpr std::chrono::milliseconds kDefaultAwait{60'000};
inline constexpr std::chrono::milliseconds kNoLimit =
    std::chrono::milliseconds::max();

// Fetches the value of a Future on demand. Thread-safe.
template <typename T>
class ValueSource {
 public:
  virtual ~ValueSource() = default;
  // Called at most once for each future, on the thread that wants the value.
  virtual Future<T> Bring() = 0;
};

namespace internal {

// Longer limits would overflow the clock; they mean no limit.
inline constexpr std::chrono::hours kLongestWait{24 * 365 * 100};

inline absl::Status StatusOf(const absl::Status& status) { return status; }
template <typename T>
absl::Status StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

template <typename T>
class FutureState {
 public:
  using Result = ResultOf<T>;
  using Callback = absl::AnyInvocable<void(const Result&)>;

  explicit FutureState(std::shared_ptr<Executor> executor,
                       std::shared_ptr<ValueSource<T>> source = nullptr)
      : executor_(std::move(executor)), source_(std::move(source)) {}

  // Returns false if there is already a result.
  bool Set(Result result) {
    std::vector<Callback> callbacks;
    {
      MutexLock lock(mutex_);
      if (result_.has_value()) return false;
      result_.emplace(std::move(result));
      ready_.store(true, std::memory_order_release);
      callbacks.swap(callbacks_);
      done_.NotifyAll();
    }
    for (Callback& callback : callbacks) callback(*result_);
    return true;
  }

  bool ready() const { return ready_.load(std::memory_order_acquire); }

  // Returns null after `timeout`.
  const Result* WaitFor(std::chrono::milliseconds timeout) const {
    if (!ready() && !Spin(timeout) && !SleepFor(timeout)) return nullptr;
    return &*result_;  // never changes once set
  }

  static void OnReady(const std::shared_ptr<FutureState>& self,
                      Callback callback) {
    {
      MutexLock lock(self->mutex_);
      if (!self->result_.has_value()) {
        self->callbacks_.push_back(std::move(callback));
        return;
      }
    }
    if (self->executor_ == nullptr) {
      callback(*self->result_);
      return;
    }
    self->executor_->Post([self, callback = std::move(callback)]() mutable {
      callback(*self->result_);
    });
  }

  // Moves the result out. Only the last handle may call it, once there is a
  // result.
  Result Take() { return *std::move(result_); }

  // Requests the result from the source, if there is one.
  static void Want(const std::shared_ptr<FutureState>& self) {
    if (self->source_ == nullptr || self->wanted_.exchange(true)) return;
    self->source_->Bring().OnReady(
        [self](const Result& result) { self->Set(result); });
  }

  const std::shared_ptr<Executor>& executor() const { return executor_; }
  const std::shared_ptr<ValueSource<T>>& source() const { return source_; }

 private:
  // Spins for a while first, because a result that comes soon is cheaper that
  // way.
  bool Spin(std::chrono::milliseconds timeout) const {
    if (timeout.count() <= 0) return false;
    Spinning& spinning = Spinning::OfThisThread();
    spinning.Restart();
    while (!ready()) {
      if (!spinning.Wait()) return false;
    }
    spinning.Came();
    return true;
  }

  bool SleepFor(std::chrono::milliseconds timeout) const {
    BlockingScope blocking;
    {
      MutexLock lock(mutex_);
      if (timeout > kLongestWait) {
        while (!result_.has_value()) done_.Wait(mutex_);
      } else {
        const auto deadline = std::chrono::steady_clock::now() + timeout;
        while (!result_.has_value()) {
          if (!done_.WaitUntil(mutex_, deadline) && !result_.has_value())
            return false;
        }
      }
    }
    Spinning::OfThisThread().Came();
    return true;
  }

  const std::shared_ptr<Executor> executor_;
  // Null if a promise sets the result.
  const std::shared_ptr<ValueSource<T>> source_;
  std::atomic<bool> wanted_{false};
  mutable Mutex mutex_;
  mutable CondVar done_;
  // Written once under mutex_; immutable, and read without it, from then on.
  std::optional<Result> result_;
  std::atomic<bool> ready_{false};
  std::vector<Callback> callbacks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace internal

// A result that will be available later: a value, or the Status of an error.
// A Future is a copyable handle; T must be copyable. Continuations run on the
// thread that sets the result, or, if there is already one, on the promise's
// executor (inline if it has none). A thread that sets a result holds no locks
// and is never one of gRPC's. Thread-safe.
template <typename T>
class [[nodiscard]] Future {
 public:
  using Value = T;
  using Result = ResultOf<T>;

  Future() = default;  // invalid; may only be assigned to

  // Returns a future of a value that is fetched only when somebody here waits
  // for it or asks whether it is ready. Continuations run as they do for
  // Promise(executor).
  static Future From(std::shared_ptr<ValueSource<T>> source,
                     std::shared_ptr<Executor> executor) {
    return Future(std::make_shared<internal::FutureState<T>>(
        std::move(executor), std::move(source)));
  }

  bool valid() const { return state_ != nullptr; }
  bool ready() const {
    internal::FutureState<T>::Want(state_);
    return state_->ready();
  }
  // Returns the source that From was given, even if nobody has asked it yet;
  // null for other futures.
  std::shared_ptr<ValueSource<T>> source() const {
    return valid() ? state_->source() : nullptr;
  }

  // Returns the executor that runs continuations added after the result; null
  // if they run inline.
  const std::shared_ptr<Executor>& executor() const {
    return state_->executor();
  }

  // Waits for the result; returns DeadlineExceeded after `timeout`, and the
  // future remains usable. No other method of the framework blocks for a
  // result.
  Result Await(std::chrono::milliseconds timeout = kDefaultAwait) const {
    internal::FutureState<T>::Want(state_);
    const Result* result = state_->WaitFor(timeout);
    if (result == nullptr) {
      return absl::DeadlineExceededError(
          absl::StrCat("no result within ", timeout.count(), " ms"));
    }
    return *result;
  }

  // Moves the result out, and makes this future invalid, if the result is there
  // and there is no other handle and no promise. Otherwise returns nullopt.
  std::optional<Result> TakeIfAlone() && {
    if (!state_->ready() || state_.use_count() != 1) return std::nullopt;
    // Unlike reading the count, destroying a handle synchronizes with the reads
    // that other threads made before they released theirs.
    { [[maybe_unused]] const auto second = state_; }
    return std::exchange(state_, nullptr)->Take();
  }

  // Calls `callback(const Result&)` once there is a result.
  template <typename Fn>
  void OnReady(Fn callback) const {
    internal::FutureState<T>::Want(state_);
    internal::FutureState<T>::OnReady(state_, std::move(callback));
  }

  // Returns the future of `fn(value)`; an error skips `fn`. `fn` may return a
  // plain value, a Status, a StatusOr or a Future; an exception becomes the
  // result's Status.
  template <typename Fn>
  auto Then(Fn fn) const;

 private:
  friend class Promise<T>;
  explicit Future(std::shared_ptr<internal::FutureState<T>> state)
      : state_(std::move(state)) {}
  std::shared_ptr<internal::FutureState<T>> state_;
};

// Sets the result of a future. If it is destroyed without a result, the future
// fails with Cancelled. Copies share one future; only the destruction of the
// last one counts. Thread-safe.
template <typename T>
class Promise {
 public:
  explicit Promise(std::shared_ptr<Executor> executor = nullptr)
      : state_(std::make_shared<internal::FutureState<T>>(std::move(executor))),
        guard_(std::make_shared<Guard>(state_)) {}

  Future<T> future() const { return Future<T>(state_); }

  // The first result counts; returns false for later ones, which are dropped.
  bool Set(ResultOf<T> result) const {
    // A continuation may drop this promise.
    const std::shared_ptr<internal::FutureState<T>> state = state_;
    return state->Set(std::move(result));
  }

 private:
  struct Guard {
    explicit Guard(std::shared_ptr<internal::FutureState<T>> s)
        : state(std::move(s)) {}
    ~Guard() {
      if (state->ready()) return;
      state->Set(absl::CancelledError("the promise was dropped"));
    }
    std::shared_ptr<internal::FutureState<T>> state;
  };
  std::shared_ptr<internal::FutureState<T>> state_;
  std::shared_ptr<Guard> guard_;
};

template <typename T>
Future<T> ReadyFuture(ResultOf<T> result) {
  Promise<T> promise;
  promise.Set(std::move(result));
  return promise.future();
}

namespace internal {

template <typename R>
struct Unwrapped {
  using Type = R;
};
template <>
struct Unwrapped<absl::Status> {
  using Type = void;
};
template <typename R>
struct Unwrapped<absl::StatusOr<R>> {
  using Type = R;
};
template <typename R>
struct Unwrapped<Future<R>> {
  using Type = R;
};
template <typename R>
inline constexpr bool kIsFuture = false;
template <typename R>
inline constexpr bool kIsFuture<Future<R>> = true;

// Sets `promise` to the result of `call`: void, a plain value, a Status, a
// StatusOr or a Future.
template <typename U, typename Call>
void SetFrom(const Promise<U>& promise, Call call) {
  using R = decltype(call());
  try {
    if constexpr (kIsFuture<R>) {
      const R inner = call();
      if (!inner.valid()) {
        promise.Set(absl::InternalError("a continuation gave no future"));
        return;
      }
      inner.OnReady([promise](const ResultOf<U>& r) { promise.Set(r); });
    } else if constexpr (std::is_void_v<R>) {
      call();
      promise.Set(absl::OkStatus());
    } else {
      promise.Set(call());
    }
  } catch (...) {
    promise.Set(StatusFromCurrentException());
  }
}

}  // namespace internal

template <typename T>
template <typename Fn>
auto Future<T>::Then(Fn fn) const {
  auto apply = [fn = std::move(fn)](const Result& result) mutable {
    if constexpr (std::is_void_v<T>) {
      (void)result;
      return fn();
    } else {
      return fn(*result);
    }
  };
  using R = decltype(apply(std::declval<const Result&>()));
  using U = typename internal::Unwrapped<R>::Type;
  Promise<U> promise(state_->executor());
  OnReady([promise, apply = std::move(apply)](const Result& result) mutable {
    if (absl::Status status = internal::StatusOf(result); !status.ok()) {
      promise.Set(status);
      return;
    }
    internal::SetFrom(promise, [&] { return apply(result); });
  });
  return promise.future();
}

// Returns a future that is done when all futures are, with their values in
// order; it fails as soon as one of them fails.
template <typename T>
Future<std::vector<T>> WaitAll(const std::vector<Future<T>>& futures);
Future<void> WaitAll(const std::vector<Future<void>>& futures);

}  // namespace baton

#include "core/future_wait_all.h"
