// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>

#include "rpc/transports/grpc.h"

namespace baton::rpc {

// What mains of peers that are nothing but a transport do: tell the address on
// a line of its own, let make(transport) handle messages, and end with the
// input. Gives the exit code.
template <typename MakeHandler>
int ServeTransport(const GrpcOptions& options, const std::string& name,
                   uint64_t incarnation, const MakeHandler& make) {
  auto transport = MakeGrpcTransport(options);
  if (!transport.ok()) {
    std::cerr << transport.status() << "\n";
    return 1;
  }
  auto handler = make(**transport);
  const absl::Status started =
      (*transport)
          ->Start({name, Rank{1}, incarnation, (*transport)->address()},
                  &handler);
  if (!started.ok()) {
    std::cerr << started << "\n";
    return 1;
  }
  std::cout << (*transport)->address() << std::endl;
  while (std::getchar() != EOF) {
  }
  (*transport)->Shutdown(std::chrono::milliseconds(1000));
  return 0;
}

}  // namespace baton::rpc
