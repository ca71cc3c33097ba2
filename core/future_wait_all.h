// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/future.h"

namespace baton {

template <typename T>
Future<std::vector<T>> WaitAll(const std::vector<Future<T>>& futures) {
  struct Gather {
    Mutex mutex;
    std::vector<std::optional<T>> values ABSL_GUARDED_BY(mutex);
    size_t missing ABSL_GUARDED_BY(mutex);
  };
  Promise<std::vector<T>> promise;
  if (futures.empty()) {
    promise.Set(std::vector<T>{});
    return promise.future();
  }
  auto gather = std::make_shared<Gather>();
  {
    MutexLock lock(gather->mutex);
    gather->values.resize(futures.size());
    gather->missing = futures.size();
  }
  for (size_t i = 0; i < futures.size(); ++i) {
    futures[i].OnReady([promise, gather, i](const absl::StatusOr<T>& result) {
      if (!result.ok()) {
        promise.Set(result.status());
        return;
      }
      std::vector<T> values;
      {
        MutexLock lock(gather->mutex);
        gather->values[i] = *result;
        if (--gather->missing > 0) return;
        for (auto& value : gather->values) values.push_back(*std::move(value));
      }
      promise.Set(std::move(values));
    });
  }
  return promise.future();
}

inline Future<void> WaitAll(const std::vector<Future<void>>& futures) {
  std::vector<Future<bool>> flags;
  flags.reserve(futures.size());
  for (const Future<void>& future : futures) {
    flags.push_back(future.Then([] { return true; }));
  }
  return WaitAll(flags).Then([](const std::vector<bool>&) {});
}

}  // namespace baton
