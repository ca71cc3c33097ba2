// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

// One function for each parser of bytes that other processes or users wrote.
// Each function takes any bytes, aborts if the parser breaks its contract,
// leaves nothing behind, and returns whether the parser accepted the bytes.
// fuzz_main.cc passes libFuzzer's bytes, replay_test.cc those of
// tests/fuzz/corpus/NAME.
namespace baton::fuzz {

struct Target {
  const char* name;
  bool (*run)(const std::string& bytes);
};

// Formats of messages between processes.
bool Frames(const std::string& bytes);  // gRPC messages of a stream
// The hello and its answers: challenge, proof and verdict.
bool Hello(const std::string& bytes);
bool Headers(const std::string& bytes);     // of messages between agents
bool Arguments(const std::string& bytes);   // of calls
bool Control(const std::string& bytes);     // what moves an owner's tables
bool Rendezvous(const std::string& bytes);  // its requests
bool CallProof(const std::string& bytes);   // what goes along with them
// Words, tickets and descriptors of the shared-memory channel.
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
// Addresses, lists of workers, devices and flags that users type; certificates.
bool Words(const std::string& bytes);
bool Certificates(const std::string& bytes);

const std::vector<Target>& Targets();

}  // namespace baton::fuzz
