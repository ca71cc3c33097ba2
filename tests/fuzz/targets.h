// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

// One function for each thing that reads bytes of strangers. Each takes any
// bytes, aborts when what it calls breaks its contract, leaves nothing behind,
// and returns whether whoever reads them would go on with what it read.
// fuzz_main.cc hands them libFuzzer's bytes, replay_test.cc those of
// tests/fuzz/corpus/NAME.
namespace baton::fuzz {

struct Target {
  const char* name;
  bool (*run)(const std::string& bytes);
};

// The wire.
bool Frames(const std::string& bytes);  // gRPC messages of a stream
// And what answers it: a challenge, a proof, the answer.
bool Hello(const std::string& bytes);
bool Headers(const std::string& bytes);     // of messages between agents
bool Arguments(const std::string& bytes);   // of calls
bool Control(const std::string& bytes);     // what moves an owner's tables
bool Rendezvous(const std::string& bytes);  // its requests
bool CallProof(const std::string& bytes);   // what goes along with them
// Words, tickets and descriptors of a channel of shared memory.
bool SharedMemory(const std::string& bytes);
bool MessageRing(const std::string& bytes);  // and what the ring's memory holds
bool Tcp(const std::string& bytes);  // tickets and the socket of one by that
// Files.
bool SafeTensorsFile(const std::string& bytes);
bool CheckpointManifest(const std::string& bytes);
bool IdxFile(const std::string& bytes);
bool ArchiveFile(const std::string& bytes);
bool CifarFile(const std::string& bytes);
bool JpegFile(const std::string& bytes);
// What users type, and what they are given to start with.
bool Words(const std::string& bytes);
bool Certificates(const std::string& bytes);

const std::vector<Target>& Targets();

}  // namespace baton::fuzz
