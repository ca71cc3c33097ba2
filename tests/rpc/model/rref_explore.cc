// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Explores schedules of the RRef protocol (rref_model.h):
//   rref_explore [--schedules=20000] [--seed=1]
// Writes the first that goes wrong, with its seed, or a line of JSON.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/rpc/model/rref_model.h"

namespace {

bool Take(const char* argument, const char* flag, long& value) {
  const size_t length = std::strlen(flag);
  if (std::strncmp(argument, flag, length) != 0) return false;
  char* end = nullptr;
  value = std::strtol(argument + length, &end, 10);
  return end != argument + length && *end == '\0' && value > 0;
}

}  // namespace

int main(int argc, char** argv) {
  long schedules = 20'000, seed = 1;
  for (int i = 1; i < argc; ++i) {
    if (!Take(argv[i], "--schedules=", schedules) &&
        !Take(argv[i], "--seed=", seed)) {
      std::fprintf(stderr, "usage: rref_explore [--schedules=N] [--seed=N]\n");
      return 2;
    }
  }
  const auto start = std::chrono::steady_clock::now();
  long steps = 0;
  for (long i = 0; i < schedules; ++i) {
    baton::rpc::internal::RRefModel model(static_cast<uint64_t>(seed + i));
    const std::string wrong = model.Run();
    steps += model.steps();
    if (!wrong.empty()) {
      std::printf("seed %ld: %s\n", seed + i, wrong.c_str());
      return 1;
    }
  }
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - start;
  std::printf(
      "{\"what\": \"rref_explore\", \"schedules\": %ld, \"steps\": %ld, "
      "\"seconds\": %.1f}\n",
      schedules, steps, took.count());
  return 0;
}
