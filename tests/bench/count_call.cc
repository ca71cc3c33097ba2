// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What a call of 64 B between two agents runs: prints the address of each
// function that at least every second call enters, as an offset into the
// program, and how often a call enters it. count_call.py builds it with a hook
// in each function, and says what the addresses are.

#include <dlfcn.h>
#include <pthread.h>

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
  std::atomic<int> entered;
};
Slot slots[kSlots];
std::atomic<bool> counting;

__attribute__((no_instrument_function)) void Count(const void* function) {
  if (!counting.load(std::memory_order_relaxed)) return;
  const auto key = reinterpret_cast<uintptr_t>(function);
  for (size_t i = key * 0x9E3779B97F4A7C15 >> 49;; i = (i + 1) % kSlots) {
    uintptr_t found = 0;
    if (slots[i].function.compare_exchange_strong(found, key) || found == key) {
      slots[i].entered.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
}

}  // namespace

extern "C" {
__attribute__((no_instrument_function)) void __cyg_profile_func_enter(
    void* function, void*) {
  Count(function);
}
__attribute__((no_instrument_function)) void __cyg_profile_func_exit(void*,
                                                                     void*) {}
// In place of the C library's, and with its help.
__attribute__((no_instrument_function)) int pthread_mutex_lock(
    pthread_mutex_t* mutex) noexcept {
  static const auto lock = reinterpret_cast<int (*)(pthread_mutex_t*)>(
      dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  Count(reinterpret_cast<const void*>(&pthread_mutex_lock));
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
    if (2 * slot.entered < kCalls) continue;
    std::printf("%zx %.2f\n", static_cast<size_t>(slot.function - base),
                static_cast<double>(slot.entered) / kCalls);
  }
  return 0;
}

}  // namespace
}  // namespace baton::bench

int main() { return baton::bench::Run(); }
