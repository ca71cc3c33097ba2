// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

// One function for each thing that reads bytes of strangers. Each takes any
// bytes, aborts when what it calls breaks its contract, and leaves nothing
// behind. fuzz_main.cc hands them libFuzzer's bytes, replay_test.cc those of
// tests/fuzz/corpus/NAME.
namespace baton::fuzz {

struct Target {
  const char* name;
  void (*run)(const std::string& bytes);
};

// The wire.
void Frames(const std::string& bytes);      // gRPC messages of a lane
void Hello(const std::string& bytes);       // and its answer
void Headers(const std::string& bytes);     // of messages between agents
void Arguments(const std::string& bytes);   // of calls
void Control(const std::string& bytes);     // what moves an owner's tables
void Rendezvous(const std::string& bytes);  // its requests
// Words, tickets and descriptors of a channel of shared memory.
void SharedMemory(const std::string& bytes);
void MessageRing(const std::string& bytes);  // and what the ring's memory holds
void Nccl(const std::string& bytes);  // words and tickets of a channel by it
void Tcp(const std::string& bytes);   // tickets and the socket of one by that
// Files.
void SafeTensorsFile(const std::string& bytes);
void IdxFile(const std::string& bytes);
void ArchiveFile(const std::string& bytes);
void CifarFile(const std::string& bytes);
void JpegFile(const std::string& bytes);
// What users type, and what they are given to start with.
void Words(const std::string& bytes);
void Certificates(const std::string& bytes);

const std::vector<Target>& Targets();

}  // namespace baton::fuzz
