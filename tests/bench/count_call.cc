// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What a call of 64 B between two agents runs: prints the address of each
// function that at least every second call enters, as an offset into the
// program, how often a call enters it, and how many locks the function takes.
// count_call.py builds it with a hook in each function, and says what the
// addresses are.

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/tensor.h"
#include "rpc/cluster.h"

extern "C" char __executable_start;

namespace {

constexpr int kCalls = 1000;
constexpr size_t kSlots = size_t{1} << 15;  // several times the functions

// A hash table, static and without locks: the hooks must not run what they
// count.
struct Slot {
  std::atomic<uintptr_t> function;
  std::atomic<int> entered, locks;
};
Slot slots[kSlots];
std::atomic<bool> counting;
// The functions that the thread is in, of those with hooks.
constexpr int kDeepest = 1000;
thread_local void* inside[kDeepest];
thread_local int depth = 0;

__attribute__((no_instrument_function)) void Count(
    const void* function, std::atomic<int> Slot::*what) {
  if (!counting.load(std::memory_order_relaxed)) return;
  const auto key = reinterpret_cast<uintptr_t>(function);
  for (size_t i = key * 0x9E3779B97F4A7C15 >> 49;; i = (i + 1) % kSlots) {
    uintptr_t found = 0;
    if (slots[i].function.compare_exchange_strong(found, key) || found == key) {
      (slots[i].*what).fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
}

}  // namespace

extern "C" {
__attribute__((no_instrument_function)) void __cyg_profile_func_enter(
    void* function, void*) {
  if (depth < kDeepest) inside[depth] = function;
  ++depth;
  Count(function, &Slot::entered);
}
__attribute__((no_instrument_function)) void __cyg_profile_func_exit(void*,
                                                                     void*) {
  --depth;
}
// In place of the C library's, and with its help.
__attribute__((no_instrument_function)) int pthread_mutex_lock(
    pthread_mutex_t* mutex) noexcept {
  static const auto lock = reinterpret_cast<int (*)(pthread_mutex_t*)>(
      dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  const bool known = depth > 0 && depth <= kDeepest;
  Count(known ? inside[depth - 1] : reinterpret_cast<void*>(lock),
        &Slot::locks);
  return lock(mutex);
}
}

namespace baton::bench {
namespace {

Tensor Nop(const Tensor&) { return Tensor::Zeros({1}); }

template <typename T>
T OrExit(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  std::cerr << result.status() << "\n";
  std::exit(1);
}

// Either of the two; "a" hosts their rendezvous.
rpc::ClusterOptions Member(const std::string& name) {
  rpc::ClusterOptions options;
  options.name = name;
  options.world_size = 2;
  options.rendezvous_host = "a";
  return options;
}

std::unique_ptr<rpc::Agent> Join(rpc::ClusterOptions options) {
  rpc::Registry served;
  served.AddFunction<&Nop>();
  return OrExit(rpc::JoinCluster(std::move(options), std::move(served)));
}

int Run() {
  std::promise<std::string> address;
  auto joining = std::async(std::launch::async, [&address] {
    rpc::ClusterOptions b = Member("b");
    b.rendezvous = address.get_future().get();
    return Join(std::move(b));
  });
  rpc::ClusterOptions a = Member("a");
  a.on_rendezvous = [&address](const std::string& at) {
    address.set_value(at);
    return absl::OkStatus();
  };
  const auto agent = Join(std::move(a));
  const auto peer = joining.get();
  const Tensor tensor = Tensor::Zeros({16});
  const auto call = [&] { OrExit(agent->Async<&Nop>("b", tensor).Await()); };
  for (int i = 0; i < kCalls; ++i) call();
  counting = true;
  for (int i = 0; i < kCalls; ++i) call();
  counting = false;
  const auto base = reinterpret_cast<uintptr_t>(&__executable_start);
  for (const Slot& slot : slots) {
    if (2 * std::max<int>(slot.entered, slot.locks) < kCalls) continue;
    std::printf("%zx %.2f %.2f\n", static_cast<size_t>(slot.function - base),
                static_cast<double>(slot.entered) / kCalls,
                static_cast<double>(slot.locks) / kCalls);
  }
  return 0;
}

}  // namespace
}  // namespace baton::bench

int main() { return baton::bench::Run(); }
