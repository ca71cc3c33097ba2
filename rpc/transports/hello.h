// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "absl/status/statusor.h"
#include "rpc/transports/grpc.h"
#include "rpc/worker.h"

// How two workers introduce themselves to each other, by messages of
// rpc/wire.proto.
namespace baton::rpc {

namespace wire {
class Challenge;
class Hello;
class HelloAnswer;
class Worker;
enum Verdict : int;
}  // namespace wire

void ToWire(const WorkerInfo& info, wire::Worker& out);
// Returns InvalidArgument unless the name, the rank, the incarnation, the
// address and the Compute declaration are usable.
absl::StatusOr<WorkerInfo> FromWire(const wire::Worker& in);

// The role of the worker that proves that it knows the token.
enum class HelloRole { kDialed, kDialer };

// Returns a hello without attempt, channels and nonce.
wire::Hello MakeHello(const GrpcOptions& options, const WorkerInfo& self,
                      const WorkerInfo& to);
wire::HelloAnswer Refusal(wire::Verdict verdict, std::string text);
// Return the frame.
grpc::ByteBuffer Encode(const wire::Hello& hello);
grpc::ByteBuffer Encode(const wire::Challenge& challenge);
grpc::ByteBuffer EncodeProof(const std::string& proof);
grpc::ByteBuffer Encode(const wire::HelloAnswer& answer);
// Return an error unless the values are usable. A worker, which every hello,
// challenge and answer of VERDICT_OK has, is one that FromWire takes; leases
// are made at most a day, and texts short and printable.
absl::StatusOr<wire::Hello> ParseHello(const std::string& meta);
absl::StatusOr<wire::Challenge> ParseChallenge(const std::string& meta);
absl::StatusOr<std::string> ParseProof(const std::string& meta);
absl::StatusOr<wire::HelloAnswer> ParseHelloAnswer(const std::string& meta);

// Returns the proof by which `role` shows the other worker that it knows the
// token. It is valid for the hello with these meta bytes and for this
// challenge; the challenge's own proof is ignored.
std::string ProofOf(HelloRole role, const std::string& token,
                    const std::string& hello, const wire::Challenge& challenge);

// Returns the verdict of `self` on the identity of the caller, whatever the
// state of the link: VERDICT_OK, or a refusal with a sentence that fits both
// sides.
wire::HelloAnswer Judge(const GrpcOptions& options, const WorkerInfo& self,
                        const wire::Hello& hello);

}  // namespace baton::rpc
