// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <filesystem>
#include <string>

#include "rpc/transport.h"
#include "rpc/worker.h"

// The inputs that the fuzzers begin with: each function saves those of one
// family of targets (targets.h).
namespace baton::fuzz {

void SaveWireSeeds();
void SaveChannelSeeds();
void SaveAgentSeeds();
void SaveFileSeeds();
void SaveWordSeeds();

// A new input's place, in a folder that is there.
std::filesystem::path PathOf(const std::string& target,
                             const std::string& name);
void Save(const std::string& target, const std::string& name,
          const std::string& bytes);
// As Input::Chunk reads it.
std::string Chunk(const std::string& bytes);
// All gRPC messages of a message, each as Frames() takes it.
std::string Sent(rpc::Message message);

extern const rpc::WorkerInfo kAlice;
extern const rpc::WorkerInfo kBob;

}  // namespace baton::fuzz
