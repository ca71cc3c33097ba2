// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What somebody without the token gets who listens where a worker was, who
// stands between two workers, or who says again what he heard.

#include "tests/rpc/impostor.h"

#include <gmock/gmock.h>

#include <map>
#include <memory>

#include "rpc/security.h"
#include "rpc/wire.pb.h"
#include "tests/rpc/grpc_worker.h"
#include "tests/rpc/raw_client.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_files.h"

namespace baton::rpc {
namespace {

using absl::StatusCode;
using baton::testing::Fails;
using baton::testing::IsOk;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

const Security kWithToken{.token = std::string(64, '5')};

GrpcOptions Guarded() {
  return {.unix_socket = false,
          .shared_memory = false,
          .tcp_tensors = false,
          .security = kWithToken};
}

// Of what was written in one piece, a frame without payload.
struct Frame {
  explicit Frame(const std::string& bytes) {
    FrameReader in(bytes);
    const auto header = in.ReadHeader();
    EXPECT_TRUE(header.ok()) << header.status();
    if (!header.ok()) return;
    kind = header->kind;
    meta.resize(header->meta_bytes);
    EXPECT_TRUE(in.Read(meta.data(), meta.size()));
  }
  FrameKind kind{};
  std::string meta;
};

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  FrameReader in(buffer);
  std::string bytes(in.remaining(), '\0');
  in.Read(bytes.data(), bytes.size());
  return bytes;
}

class GrpcImpostor : public ::testing::Test {
 protected:
  GrpcImpostor() : alice_(NewWorker("alice", 0, Guarded())) { alice_->Start(); }
  // Bob has lived at an address where nobody is now.
  void LetBobDie(const GrpcOptions& options = Guarded()) {
    auto worker = NewWorker("bob", 1, options);
    worker->Start();
    bob_ = worker->info;
    alice_->transport->AddPeer(bob_);
    ASSERT_THAT(alice_->SendTo("bob", {"to bob", {}}), IsOk());
    worker = nullptr;
    alice_->mailbox.AwaitLost(1);
  }
  absl::Status SayASecret() { return alice_->SendTo("bob", {"a secret", {}}); }
  void ExpectNothingTold(const Impostor& impostor) {
    EXPECT_FALSE(impostor.HasHeard(kWithToken.token));
    EXPECT_FALSE(impostor.HasHeard("a secret"));
    EXPECT_EQ(alice_->mailbox.count(), 0u);
  }
  wire::HelloAnswer AsBob() const {
    wire::HelloAnswer answer;
    ToWire(bob_, *answer.mutable_self());
    return answer;
  }

  std::unique_ptr<TestWorker> alice_;
  WorkerInfo bob_;
};

TEST_F(GrpcImpostor, OnADeadWorkersPortIsNotTold) {
  LetBobDie();
  Impostor impostor(TcpOf(bob_.address), [](const auto&) -> Impostor::Reply {
    return {.end = true};
  });
  EXPECT_FALSE(SayASecret().ok());
  EXPECT_TRUE(impostor.AwaitMessages(1, kPatience));
  ExpectNothingTold(impostor);
}

TEST_F(GrpcImpostor, OnADeadWorkersSocketIsNotBelieved) {
  baton::testing::TempFolder folder;
  GrpcOptions options = Guarded();
  options.listen = "unix:" + (folder / "bob");
  LetBobDie(options);
  Impostor impostor(options.listen, [&](const auto&) -> Impostor::Reply {
    return {.message = BytesOf(Encode(AsBob()))};
  });
  EXPECT_THAT(SayASecret(), Fails(StatusCode::kUnauthenticated,
                                  "does not prove to know the cluster token"));
  ExpectNothingTold(impostor);
}

// The first answer ends the attempt, to which the second one belongs.
TEST_F(GrpcImpostor, ASecondAnswerBesideAnUnprovenOneIsNotHeard) {
  LetBobDie();
  wire::HelloAnswer unproven = AsBob();
  unproven.set_verdict(wire::VERDICT_UNPROVEN);
  Impostor impostor(TcpOf(bob_.address), [&](const auto&) -> Impostor::Reply {
    return {.message = BytesOf(Encode(unproven)) + BytesOf(Encode(AsBob()))};
  });
  for (int turn = 0; turn < 2; ++turn)
    EXPECT_THAT(SayASecret(), Fails(StatusCode::kUnauthenticated, ""));
  ExpectNothingTold(impostor);
}

TEST_F(GrpcImpostor, WhoMakesUpAProofIsNotBelieved) {
  LetBobDie();
  for (const std::string& proof : {std::string(), std::string(32, 'x')}) {
    wire::Challenge challenge;
    ToWire(bob_, *challenge.mutable_self());
    challenge.set_nonce(std::string(16, 'n'));
    challenge.set_proof(proof);
    Impostor impostor(TcpOf(bob_.address), [&](const auto&) -> Impostor::Reply {
      return {.message = BytesOf(Encode(challenge))};
    });
    EXPECT_THAT(SayASecret(),
                Fails(StatusCode::kUnauthenticated,
                      "does not prove to know the cluster token; give all"));
    ExpectNothingTold(impostor);
  }
}

// Alice herself knows the token: what she says to one who calls himself alice,
// with her own hello, must not convince her.
TEST_F(GrpcImpostor, AWorkersOwnAnswerIsNotBelievedByIt) {
  LetBobDie();
  std::unique_ptr<RawClient> to_alice;
  Impostor impostor(
      TcpOf(bob_.address), [&](const Impostor::Said& said) -> Impostor::Reply {
        to_alice = std::make_unique<RawClient>(TcpOf(alice_->info.address));
        to_alice->WriteBytes(said.bytes);
        const auto challenge = to_alice->ReadMeta(FrameKind::kChallenge);
        EXPECT_THAT(challenge, IsOk());
        if (!challenge.ok()) return {.end = true};
        return {.message = MetaBytes(FrameKind::kChallenge, *challenge)};
      });
  EXPECT_THAT(SayASecret(),
              Fails(StatusCode::kUnavailable,
                    "worker alice lives where worker bob was expected"));
  EXPECT_TRUE(impostor.AwaitMessages(1, kPatience));
  ExpectNothingTold(impostor);
}

// The proof of one role is none in the other.
TEST_F(GrpcImpostor, WhoDialsCannotSendAWorkersProofBackToIt) {
  wire::Hello hello =
      MakeHello({}, {"bob", Rank{1}, 99, "127.0.0.1:1"}, alice_->info);
  hello.set_attempt(1);
  hello.set_nonce(std::string(kKeyBytes, 'n'));
  RawClient mallory(TcpOf(alice_->info.address));
  mallory.Write(Encode(hello));
  const auto meta = mallory.ReadMeta(FrameKind::kChallenge);
  ASSERT_THAT(meta, IsOk());
  const auto challenge = ParseChallenge(*meta);
  ASSERT_THAT(challenge, IsOk());
  EXPECT_EQ(challenge->self().name(), "alice");
  mallory.Write(EncodeProof(challenge->proof()));
  const auto answer = mallory.ReadAnswer();
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->verdict(), wire::VERDICT_UNPROVEN);
  EXPECT_THAT(answer->text(), HasSubstr("another cluster token"));
}

wire::Hello FromEve(const WorkerInfo& to) {
  wire::Hello hello = MakeHello({}, {"eve", Rank{1}, 99, "127.0.0.1:1"}, to);
  hello.set_nonce(std::string(kKeyBytes, 'n'));
  return hello;
}

TEST_F(GrpcImpostor, WhoDoesNotWaitForTheChallengeIsRefused) {
  RawClient hasty(TcpOf(alice_->info.address));
  hasty.Write(Encode(FromEve(alice_->info)));
  hasty.Write(EncodeProof("early"));
  ASSERT_THAT(hasty.ReadMeta(FrameKind::kChallenge), IsOk());
  const auto answer = hasty.ReadAnswer();
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->verdict(), wire::VERDICT_UNPROVEN);
}

TEST_F(GrpcImpostor, WhoProvesNothingIsCutOff) {
  GrpcOptions options = Guarded();
  options.hello_timeout = milliseconds(2000);  // else never
  auto bob = NewWorker("bob", 1, options);
  bob->Start();
  RawClient silent(TcpOf(bob->info.address));
  silent.Write(Encode(FromEve(bob->info)));
  ASSERT_THAT(silent.ReadMeta(FrameKind::kChallenge), IsOk());
  grpc::ByteBuffer frames;
  EXPECT_FALSE(silent.Read(&frames));
}

// A man between alice and bob, who are both alive.
class GrpcRelay : public GrpcImpostor {
 protected:
  GrpcRelay() : live_bob_(NewWorker("bob", 1, Guarded())) {
    live_bob_->Start();
    bob_ = live_bob_->info;
  }
  // What alice says goes on to bob as `change` has it, and what he says to that
  // to her.
  std::unique_ptr<Impostor> Between(
      std::function<std::string(const std::string&)> change) {
    return std::make_unique<Impostor>(
        "127.0.0.1:0",
        [this, change](const Impostor::Said& said) -> Impostor::Reply {
          MutexLock lock(mutex_);
          std::unique_ptr<RawClient>& to_bob = to_bob_[said.call];
          if (to_bob == nullptr)
            to_bob = std::make_unique<RawClient>(TcpOf(bob_.address));
          to_bob->WriteBytes(change(said.bytes));
          const Frame frame(said.bytes);
          if (frame.kind != FrameKind::kHello &&
              frame.kind != FrameKind::kProof)
            return {};
          const auto kind = frame.kind == FrameKind::kHello
                                ? FrameKind::kChallenge
                                : FrameKind::kHelloAnswer;
          const auto answer = to_bob->ReadMeta(kind);
          if (!answer.ok()) return {.end = true};
          said_.push_back(said.bytes);
          answered_.push_back(MetaBytes(kind, *answer));
          return {.message = answered_.back()};
        });
  }
  void LetAliceDial(const std::string& address) {
    WorkerInfo moved = bob_;
    moved.address = address;
    alice_->transport->AddPeer(moved);
  }

  std::unique_ptr<TestWorker> live_bob_;
  Mutex mutex_;
  std::map<size_t, std::unique_ptr<RawClient>> to_bob_;
  std::vector<std::string> said_, answered_;  // hello, proof; to them
};

// In clear nothing keeps him from passing on what is said, of which he can make
// no use later.
TEST_F(GrpcRelay, WhatWasSaidOnceIsOfNoUseOnALaterConnection) {
  auto relay = Between([](const std::string& bytes) { return bytes; });
  LetAliceDial(relay->address());
  ASSERT_THAT(SayASecret(), IsOk());
  EXPECT_EQ(live_bob_->mailbox.Await(1).at(0).message.header, "a secret");
  EXPECT_FALSE(relay->HasHeard(kWithToken.token));
  std::vector<std::string> said, answered;
  {
    MutexLock lock(mutex_);
    said = said_;
    answered = answered_;
  }
  ASSERT_GE(said.size(), 2u);
  // To bob, as alice: her hello, and her proof for another challenge.
  RawClient mallory(TcpOf(bob_.address));
  mallory.WriteBytes(said[0]);
  ASSERT_THAT(mallory.ReadMeta(FrameKind::kChallenge), IsOk());
  mallory.WriteBytes(said[1]);
  const auto refused = mallory.ReadAnswer();
  ASSERT_THAT(refused, IsOk());
  EXPECT_EQ(refused->verdict(), wire::VERDICT_UNPROVEN);
  EXPECT_EQ(live_bob_->mailbox.lost(), 0u);  // alice's connection is as it was
  // To alice, as bob: his challenge and answer to another hello.
  relay = nullptr;
  alice_->mailbox.AwaitLost(1);
  Impostor impostor(
      "127.0.0.1:0", [&](const Impostor::Said& each) -> Impostor::Reply {
        const bool hello = Frame(each.bytes).kind == FrameKind::kHello;
        return {.message = answered[hello ? 0 : 1]};
      });
  LetAliceDial(impostor.address());
  EXPECT_THAT(SayASecret(), Fails(StatusCode::kUnauthenticated,
                                  "does not prove to know the cluster token"));
  ExpectNothingTold(impostor);
  MutexLock lock(mutex_);
  to_bob_.clear();
}

TEST_F(GrpcRelay, WhoChangesAHelloIsNoticed) {
  auto relay = Between([](const std::string& bytes) {
    const Frame frame(bytes);
    if (frame.kind != FrameKind::kHello) return bytes;
    auto hello = ParseHello(frame.meta);
    EXPECT_THAT(hello, IsOk());
    hello->mutable_self()->set_name("mallory");
    return BytesOf(Encode(*hello));
  });
  LetAliceDial(relay->address());
  EXPECT_THAT(SayASecret(), Fails(StatusCode::kUnauthenticated,
                                  "does not prove to know the cluster token"));
  EXPECT_EQ(live_bob_->mailbox.count(), 0u);
  ExpectNothingTold(*relay);
  MutexLock lock(mutex_);
  to_bob_.clear();
}

}  // namespace
}  // namespace baton::rpc
