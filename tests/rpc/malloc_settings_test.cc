// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "rpc/transports/grpc_settings.h"

// The sanitizers have a malloc of their own, which these settings are not for.
#if !defined(BATON_SANITIZED)

namespace baton::rpc {
namespace {

int64_t FaultsOfThisThread() {
  rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

// As a tensor that comes in chunks.
void UseAndFree() {
  constexpr size_t kBlock = size_t{1} << 20;
  std::vector<char*> blocks(16);
  for (char*& block : blocks) {
    block = static_cast<char*>(std::malloc(kBlock));
    for (size_t i = 0; i < kBlock; i += 4096)
      static_cast<volatile char*>(block)[i] = 1;
  }
  for (char* block : blocks) std::free(block);
}

int64_t FaultsOfUses() {
  for (int i = 0; i < 5; ++i) UseAndFree();
  const int64_t before = FaultsOfThisThread();
  for (int i = 0; i < 10; ++i) UseAndFree();
  return FaultsOfThisThread() - before;
}

TEST(MallocSettings, WhatWasFreedIsUsedAgainWithoutFaults) {
  KeepFreedMemory();
  // 40,960 pages were written.
  EXPECT_LT(FaultsOfUses(), 500);
  int64_t of_a_thread = 0;
  std::thread([&] { of_a_thread = FaultsOfUses(); }).join();
  EXPECT_LT(of_a_thread, 500);
}

}  // namespace
}  // namespace baton::rpc

#endif
