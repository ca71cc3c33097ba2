// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What a transport and a rendezvous read.

#include <cstdint>

#include "core/status.h"
#include "core/tensor.h"
#include "rpc/rendezvous.pb.h"
#include "rpc/security.h"
#include "rpc/transports/framing.h"
#include "rpc/transports/grpc.h"
#include "rpc/transports/hello.h"
#include "rpc/wire.pb.h"
#include "tests/fuzz/seeds.h"

namespace baton::fuzz {
namespace {

namespace wire = rpc::wire;

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  rpc::FrameReader in(buffer);
  std::string bytes(in.remaining(), '\0');
  in.Read(bytes.data(), bytes.size());
  return bytes;
}

std::string HelloFrame() {
  rpc::GrpcOptions options;
  options.cluster = "baton";
  options.registry_digest = "abc";
  return BytesOf(rpc::Encode(MakeHello(options, kBob, kAlice)));
}

void FramesAndHello() {
  const std::string hello = HelloFrame();
  Save("frames", "hello", '\0' + Chunk(hello));
  const std::string small =
      Sent({"header", {Tensor::Zeros({2, 3}), Tensor::Full({}, 1.0)}});
  Save("frames", "small", small);
  Save(
      "frames", "types",
      Sent(
          {"",
           {Tensor::Zeros({4}, {.dtype = DType::kBool}),
            Tensor::Zeros({1, 2, 2, 2}).Contiguous(MemoryFormat::kChannelsLast),
            Tensor::Zeros({0, 5}, {.dtype = DType::kI64})}}));
  const std::string chunks =
      Sent({std::string(70'000, 'h'), {Tensor::Zeros({10'000})}});
  Save("frames", "chunks", chunks);
  // Behind the first write of it, whose size is in its second and third byte.
  const size_t first = 3 + static_cast<uint8_t>(chunks[1]) +
                       256 * size_t{static_cast<uint8_t>(chunks[2])};
  Save("frames", "whole_between_chunks",
       chunks.substr(0, first) + small + chunks.substr(first));
  Save("frames", "beat",
       '\1' + Chunk(rpc::MetaBytes(rpc::FrameKind::kBeat, "") +
                    rpc::MetaBytes(rpc::FrameKind::kGoodbye, "")));
  const std::string meta = hello.substr(rpc::kFrameHeaderBytes);
  Save("hello", "hello", meta);
  wire::Hello endless;
  BATON_CHECK(endless.ParseFromString(meta));
  endless.set_lease_ms(INT64_MAX);
  endless.set_cluster("\x1b[2J\n");
  Save("hello", "endless_lease", endless.SerializeAsString());
  wire::Hello guarded;
  BATON_CHECK(guarded.ParseFromString(meta));
  guarded.set_nonce(std::string(rpc::kKeyBytes, 'n'));
  Save("hello", "with_nonce", guarded.SerializeAsString());
  wire::Challenge told;
  rpc::ToWire(kAlice, *told.mutable_self());
  told.set_nonce(std::string(rpc::kKeyBytes, 'm'));
  told.set_proof(std::string(32, 'p'));
  const std::string challenge = BytesOf(rpc::Encode(told));
  const std::string proof = BytesOf(rpc::EncodeProof(std::string(32, 'q')));
  Save("hello", "challenge", challenge.substr(rpc::kFrameHeaderBytes));
  Save("hello", "proof", proof.substr(rpc::kFrameHeaderBytes));
  Save("frames", "proofs", '\0' + Chunk(challenge) + '\0' + Chunk(proof));
  wire::HelloAnswer answer;
  rpc::ToWire(kAlice, *answer.mutable_self());
  Save("hello", "answer",
       BytesOf(rpc::Encode(answer)).substr(rpc::kFrameHeaderBytes));
}

void Rendezvous() {
  wire::JoinRequest join;
  join.set_cluster("baton");
  join.mutable_self()->set_name("alice");
  join.mutable_self()->set_rank(-1);
  join.mutable_self()->set_incarnation(1);
  join.mutable_self()->set_address("127.0.0.1:1");
  join.mutable_self()->set_compute("cuda:1 bf16 tf32");
  join.set_world_size(1);
  join.set_lease_ms(2000);
  join.add_expected("bob");
  const std::string asked = Chunk(join.SerializeAsString());
  wire::LeaveRequest leave;
  leave.set_cluster("baton");
  leave.set_name("alice");
  leave.set_incarnation(1);
  wire::RenewRequest renew;
  renew.set_cluster("baton");
  renew.set_name("alice");
  renew.set_incarnation(1);
  Save("rendezvous", "life",
       '\0' + asked + '\2' + Chunk(renew.SerializeAsString()) +
           std::string("\4\3", 2) + '\1' + Chunk(leave.SerializeAsString()));
  join.set_world_size(2);
  Save("rendezvous", "wait",
       '\0' + Chunk(join.SerializeAsString()) + '\0' + asked +
           std::string("\3\0", 2));
  join.mutable_self()->set_rank(1);
  *renew.mutable_seat() = join;
  renew.set_wait_ms(400);
  wire::RenewAnswer answer;
  answer.set_version(7);
  answer.set_whole(true);
  *answer.add_members() = join.self();
  answer.add_departed()->set_name("bob");
  Save("rendezvous", "return",
       '\2' + Chunk(renew.SerializeAsString()) + std::string("\4\3", 2) + '\2' +
           Chunk(renew.SerializeAsString()) + '\5' +
           Chunk(answer.SerializeAsString()));
}

void CallProof() {
  wire::CallProof call;
  call.set_nonce(std::string(16, 'n'));
  const std::string first = Chunk(call.SerializeAsString());
  call.set_challenge(std::string(56, 'c'));
  call.set_number(1);
  call.set_proof(std::string(32, 'p'));
  const std::string asked = Chunk("asked");
  wire::AnswerProof answer;
  answer.set_challenge(call.challenge());
  answer.set_proof(call.proof());
  Save("call_proof", "known",
       '\2' + asked + '\2' + asked + "\3\x3d" + '\2' + asked);
  Save("call_proof", "unknown",
       '\0' + first + asked + '\0' + Chunk(call.SerializeAsString()) + asked +
           '\1' + Chunk(answer.SerializeAsString()) + '\2' + asked);
}

}  // namespace

void SaveWireSeeds() {
  FramesAndHello();
  Rendezvous();
  CallProof();
}

}  // namespace baton::fuzz
