// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rpc/transports/grpc.h"
#include "rpc/transports/tensor_channels.h"
#include "rpc/worker.h"

// How two workers introduce themselves to each other; see rpc/wire.proto.
namespace baton::rpc {

namespace wire {
class Worker;
}

void ToWire(const WorkerInfo& info, wire::Worker& out);
// Returns InvalidArgument unless the name, the rank, the incarnation, the
// address and the Compute declaration are usable.
absl::StatusOr<WorkerInfo> FromWire(const wire::Worker& in);

enum class Verdict {
  kOk,
  kYield,
  kStale,
  kRefused,
  kNotMe,
  kShutDown,
  kUnproven
};

struct Hello {
  uint32_t version = 0;
  std::string cluster = {};
  std::string registry_digest = {};
  WorkerInfo self = {};
  std::string to_name = {};
  uint64_t to_incarnation = 0;
  bool bulk = false;
  uint64_t attempt = 0;
  std::chrono::milliseconds lease{0};
  std::vector<ChannelOffer> channels = {};
  std::vector<uint64_t> exports = {};
  uint64_t max_message_bytes = 0;  // 0 if unknown
  std::string nonce = {};          // empty if the caller has no token
};

// The answer of the dialed worker to a hello with a nonce.
struct Challenge {
  WorkerInfo self = {};  // its name and incarnation
  std::string nonce = {};
  std::string proof = {};
};

// The role of the worker that proves that it knows the token.
enum class HelloRole { kDialed, kDialer };

struct HelloAnswer {
  Verdict verdict = Verdict::kOk;
  std::string text = {};
  WorkerInfo self = {};
  uint64_t abandoned_attempt = 0;
  std::chrono::milliseconds lease{0};
  std::vector<ChannelOffer> channels = {};
  uint64_t max_message_bytes = 0;  // as in Hello
};

Hello MakeHello(const GrpcOptions& options, const WorkerInfo& self,
                const WorkerInfo& to);
// Returns the meta bytes of the hello's frame.
std::string Serialize(const Hello& hello);
grpc::ByteBuffer Encode(const Hello& hello);
grpc::ByteBuffer Encode(const Challenge& challenge);
grpc::ByteBuffer EncodeProof(const std::string& proof);
grpc::ByteBuffer Encode(const HelloAnswer& answer);
// Return an error unless the values are usable: valid names, leases of at most
// a day, and texts that are short and printable.
absl::StatusOr<Hello> ParseHello(const std::string& meta);
absl::StatusOr<Challenge> ParseChallenge(const std::string& meta);
absl::StatusOr<std::string> ParseProof(const std::string& meta);
absl::StatusOr<HelloAnswer> ParseHelloAnswer(const std::string& meta);

// Returns the proof by which `role` shows the other worker that it knows the
// token. It is valid for the hello with these meta bytes and for this
// challenge; the challenge's own proof is ignored.
std::string ProofOf(HelloRole role, const std::string& token,
                    const std::string& hello, const Challenge& challenge);

// Returns the answer of `self` to the identity of the caller, whatever the
// state of the link: kOk, or kRefused or kNotMe with a sentence that fits both
// sides.
HelloAnswer Judge(const GrpcOptions& options, const WorkerInfo& self,
                  const Hello& hello);

}  // namespace baton::rpc
