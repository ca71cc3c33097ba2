// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/mutex.h"
#include "core/status.h"

namespace baton::autograd {

namespace internal {

class HookTable {
 public:
  virtual ~HookTable() = default;
  virtual void Remove(uint64_t number) = 0;
};

}  // namespace internal

// Identifies a hook, to remove it; the destructor does not. Thread-safe, as
// hooks are: a concurrent pass may still call a removed hook once.
class HookHandle {
 public:
  HookHandle() = default;  // identifies no hook
  HookHandle(std::weak_ptr<internal::HookTable> table, uint64_t number)
      : table_(std::move(table)), number_(number) {}
  void Remove() const {
    if (const auto table = table_.lock()) table->Remove(number_);
  }

 private:
  std::weak_ptr<internal::HookTable> table_;
  uint64_t number_ = 0;
};

// Functions that are called on an event, in the order in which they were added.
// An exception is rethrown with the hook's name: "hook clip: ...", or "hook 2:
// ..." if it has none. Thread-safe.
template <typename Fn>
class Hooks {
 public:
  HookHandle Add(Fn hook, const std::string& name) {
    std::shared_ptr<Table> table;
    {
      MutexLock lock(mutex_);
      if (table_ == nullptr) table_ = std::make_shared<Table>();
      table = table_;
    }
    MutexLock lock(table->mutex);
    const uint64_t number = ++table->last;
    table->hooks.emplace(
        number,
        Named{name.empty() ? absl::StrCat(number) : name, std::move(hook)});
    return HookHandle(table, number);
  }

  bool empty() const { return Now().empty(); }

  // Calls `call(hook)` for each present hook. Throws Error.
  template <typename Call>
  void ForEach(const Call& call) const {
    for (const Named& hook : Now()) {
      const absl::Status status = CatchErrors([&] { call(hook.function); });
      if (!status.ok())
        throw Error(Annotate(status, absl::StrCat("hook ", hook.name)));
    }
  }

 private:
  struct Named {
    std::string name;
    Fn function;
  };
  struct Table final : internal::HookTable {
    void Remove(uint64_t number) override {
      // Destroyed after the lock is released, because it may own a lot.
      typename std::map<uint64_t, Named>::node_type removed;
      MutexLock lock(mutex);
      removed = hooks.extract(number);
    }
    Mutex mutex;
    uint64_t last ABSL_GUARDED_BY(mutex) = 0;
    std::map<uint64_t, Named> hooks ABSL_GUARDED_BY(mutex);
  };

  std::vector<Named> Now() const {
    std::vector<Named> now;
    std::shared_ptr<Table> table;
    {
      MutexLock lock(mutex_);
      table = table_;
    }
    if (table == nullptr) return now;
    MutexLock lock(table->mutex);
    for (const auto& [number, hook] : table->hooks) now.push_back(hook);
    return now;
  }

  mutable Mutex mutex_;
  std::shared_ptr<Table> table_ ABSL_GUARDED_BY(mutex_);  // null: none yet
};

}  // namespace baton::autograd
