// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "models/distributed/server/options.h"

namespace baton::dist {

// Returns a name of the cores that this process may use: equal in processes
// that may use the same ones of the same machine.
std::string CoresHere();

// What a server has to step its shards with.
struct StepPlace {
  int threads = 1;  // compute threads of its worker
  int cores = 1;    // that its process may use
  int servers = 1;  // that may use the same cores, itself among them
};
// Returns the number of threads that step a shard there.
int StepThreads(const ServerOptions& options, const StepPlace& place);
// The same in this process, for the calling thread.
int StepThreadsHere(const ServerOptions& options, int servers = 1);

namespace server_calls {
std::string Cores();  // CoresHere of the worker
}  // namespace server_calls

}  // namespace baton::dist
