// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// BATON_FUZZ=NAME baton_fuzz [LIBFUZZER'S FLAGS] FOLDER...

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/log.h"
#include "rpc/transports/grpc_settings.h"
#include "tests/fuzz/targets.h"

namespace {

const baton::fuzz::Target* target = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  baton::SetLogLevel(baton::LogLevel::kError);
  baton::rpc::TakeGrpcLog();
  const char* name = std::getenv("BATON_FUZZ");
  for (const auto& each : baton::fuzz::Targets()) {
    if (name != nullptr && std::strcmp(name, each.name) == 0) target = &each;
  }
  if (target != nullptr) return 0;
  std::fprintf(stderr, "BATON_FUZZ names one of:\n");
  for (const auto& each : baton::fuzz::Targets()) {
    std::fprintf(stderr, "  %s\n", each.name);
  }
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  target->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
