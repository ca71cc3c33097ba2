// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>

#include "rpc/transports/framing.h"
#include "rpc/transports/hello.h"
#include "rpc/wire.pb.h"
#include "tests/rpc/grpc_worker.h"
#include "tests/rpc/raw_client.h"

// Those who do not speak as a worker does.
namespace baton::rpc {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

wire::Hello HelloTo(const WorkerInfo& to) {
  wire::Hello hello =
      MakeHello({}, {"mallory", Rank{5}, 99, "127.0.0.1:1"}, to);
  hello.set_attempt(1);
  return hello;
}

TEST(GrpcHostile, GarbageInsteadOfAHelloEndsThatConnectionOnly) {
  auto alice = NewWorker("alice", 0);
  alice->Start();
  std::string wrong_kind;
  AppendFrameHeader({static_cast<FrameKind>(77), 0, 0}, wrong_kind);
  std::string too_long;
  AppendFrameHeader({FrameKind::kHello, 1u << 30, ~uint64_t{0}}, too_long);
  std::string early_chunk;
  AppendFrameHeader({FrameKind::kChunk, 0, 1}, early_chunk);
  std::string no_proto;
  AppendFrameHeader({FrameKind::kHello, 3, 0}, no_proto);
  for (const std::string& bytes :
       {std::string(), std::string("x"), std::string(1000, '\xff'), wrong_kind,
        too_long, early_chunk + "x", no_proto + "\xff\xff\xff"}) {
    RawClient client(TcpOf(alice->info.address));
    client.WriteBytes(bytes);
    const auto answer = client.ReadAnswer();
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->verdict(), wire::VERDICT_REFUSED);
    EXPECT_THAT(answer->text(), HasSubstr("no valid hello"));
  }
  auto bob = NewWorker("bob", 1);
  bob->Start();
  bob->transport->AddPeer(alice->info);
  EXPECT_TRUE(bob->SendTo("alice", {"fine", {}}).ok());
}

TEST(GrpcHostile, GarbageAfterTheHelloBreaksThatConnectionOnly) {
  auto alice = NewWorker("alice", 0);
  alice->Start();
  const std::string meta_of_a_huge_tensor =
      // header_size 0; one f32 tensor of 2^62 x 2^62 elements, chunked.
      std::string("\x1a\x18\x12\x12") +
      "\x80\x80\x80\x80\x80\x80\x80\x80\x40"
      "\x80\x80\x80\x80\x80\x80\x80\x80\x40" +
      "\x20\x01\x20\x01";
  std::vector<std::string> attacks;
  for (const std::string& meta :
       {std::string("\xff\xff"), meta_of_a_huge_tensor,
        std::string("\x1a\x02\x08\x63"),              // dtype 99
        std::string("\x1a\x03\x12\x01\x05"),          // five floats, no bytes
        std::string("\x08\xff\xff\xff\xff\xff\x7f"),  // an endless header
        std::string("\x1a\x02\x18\x01")}) {           // channels-last, rank 0
    attacks.emplace_back();
    AppendFrameHeader(
        {FrameKind::kMessage, static_cast<uint32_t>(meta.size()), 0},
        attacks.back());
    attacks.back() += meta;
  }
  attacks.push_back(std::string(20, 'x'));
  std::string twice;  // messages of a tensor that comes in chunks
  for (int i = 0; i < 2; ++i) {
    AppendFrameHeader({FrameKind::kMessage, 4, 0}, twice);
    twice += "\x1a\x02\x20\x01";
  }
  attacks.push_back(twice);
  size_t lost = 0;
  for (const std::string& attack : attacks) {
    RawClient client(TcpOf(alice->info.address));
    wire::Hello hello = HelloTo(alice->info);
    hello.set_attempt(++lost);
    client.Write(Encode(hello));
    ASSERT_EQ(client.ReadAnswer()->verdict(), wire::VERDICT_OK);
    client.WriteBytes(attack);
    grpc::ByteBuffer rest;
    while (client.Read(&rest)) {
    }  // a beat may be on its way; then alice ends the stream
    EXPECT_THAT(std::string(alice->mailbox.AwaitLost(lost).back().message()),
                HasSubstr("mallory: it sent what makes no sense"));
  }
  EXPECT_EQ(alice->mailbox.count(), 0u);
}

// Who sends it all the same knows of the limit and does not care.
TEST(GrpcHostile, AMessageAboveTheLimitBreaksItsConnection) {
  auto alice = NewWorker("alice", 0, {.max_message_bytes = 1000});
  alice->Start();
  RawClient client(TcpOf(alice->info.address));
  client.Write(Encode(HelloTo(alice->info)));
  const auto answer = client.ReadAnswer();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->max_message_bytes(), 1000u);
  std::string frame;
  AppendFrameHeader({FrameKind::kMessage, 3, 0}, frame);
  client.WriteBytes(frame + "\x08\xe9\x07");  // a header of 1001 bytes
  EXPECT_THAT(std::string(alice->mailbox.AwaitLost(1).at(0).message()),
              HasSubstr("a message above the 1000 bytes that are allowed "
                        "(--max_message_bytes)"));
}

TEST(GrpcHostile, RefusesMessagesBeforeTheHello) {
  auto alice = NewWorker("alice", 0);
  alice->Start();
  std::string message;
  AppendFrameHeader({FrameKind::kMessage, 2, 0}, message);
  RawClient client(TcpOf(alice->info.address));
  client.WriteBytes(message + std::string("\x08\x00", 2));
  const auto answer = client.ReadAnswer();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->text(), HasSubstr("a message before the hello"));
}

// A refusal quotes what an unauthenticated peer sent, and is shown in
// terminals.
TEST(GrpcHostile, RefusalsQuoteOnlyWhatCanBePrinted) {
  auto alice = NewWorker("alice", 0);
  alice->Start();
  wire::Hello hello = HelloTo(alice->info);
  hello.set_cluster("\x1b[2J\nW all is well" + std::string(5000, 'x'));
  RawClient client(TcpOf(alice->info.address));
  client.Write(Encode(hello));
  const auto answer = client.ReadAnswer();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->text(), HasSubstr("\"?[2J?W all is well"));
  EXPECT_EQ(answer->text().find('\x1b'), std::string::npos);
  EXPECT_EQ(answer->text().find('\n'), std::string::npos);
  EXPECT_LT(answer->text().size(), 1500u);
}

TEST(GrpcHostile, AnotherVersionOrWorkerIsRefused) {
  auto alice = NewWorker("alice", 0);
  alice->Start();
  wire::Hello hello = HelloTo(alice->info);
  hello.set_version(99);
  RawClient old(TcpOf(alice->info.address));
  old.Write(Encode(hello));
  EXPECT_THAT(old.ReadAnswer()->text(), HasSubstr("version 99"));
  hello = HelloTo(alice->info);
  hello.set_to_name("bob");
  RawClient lost(TcpOf(alice->info.address));
  lost.Write(Encode(hello));
  EXPECT_EQ(lost.ReadAnswer()->verdict(), wire::VERDICT_NOT_ME);
}

TEST(GrpcHostile, AnOldProcessThatWakesDoesNotBreakItsSuccessorsConnection) {
  auto alice = NewWorker("alice", 0);
  alice->Start();
  wire::Hello hello = HelloTo(alice->info);
  RawClient old(TcpOf(alice->info.address));
  old.Write(Encode(hello));
  ASSERT_EQ(old.ReadAnswer()->verdict(), wire::VERDICT_OK);
  hello.mutable_self()->set_incarnation(100);
  RawClient successor(TcpOf(alice->info.address));
  successor.Write(Encode(hello));
  ASSERT_EQ(successor.ReadAnswer()->verdict(), wire::VERDICT_OK);
  alice->mailbox.AwaitLost(1);
  hello.mutable_self()->set_incarnation(99);
  hello.set_attempt(7);
  RawClient woken(TcpOf(alice->info.address));
  woken.Write(Encode(hello));
  const auto answer = woken.ReadAnswer();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->verdict(), wire::VERDICT_REFUSED);
  EXPECT_THAT(answer->text(), HasSubstr("has been replaced"));
  EXPECT_TRUE(alice->SendTo("mallory", {"still there", {}}).ok());
  grpc::ByteBuffer frames;
  EXPECT_TRUE(successor.Read(&frames));
  EXPECT_EQ(alice->mailbox.lost(), 1u);
}

TEST(GrpcHostile, AProcessThatWasForgottenIsRefusedOnceItHasASuccessor) {
  auto alice = NewWorker("alice", 0);
  alice->Start();
  wire::Hello hello = HelloTo(alice->info);
  const auto verdict = [&] {
    RawClient client(TcpOf(alice->info.address));
    client.Write(Encode(hello));
    hello.set_attempt(hello.attempt() + 1);
    return client.ReadAnswer()->verdict();
  };
  for (uint64_t times = 1; times <= 2; ++times) {  // it may come back
    EXPECT_EQ(verdict(), wire::VERDICT_OK);
    alice->mailbox.AwaitLost(times);
    alice->transport->Forget(*FromWire(hello.self()));
  }
  WorkerInfo successor = *FromWire(hello.self());
  ++successor.incarnation;
  alice->transport->AddPeer(successor);
  EXPECT_EQ(verdict(), wire::VERDICT_REFUSED);
  ToWire(successor, *hello.mutable_self());
  EXPECT_EQ(verdict(), wire::VERDICT_OK);
}

TEST(GrpcHostile, WhoSaysNoHelloIsCutOff) {
  auto alice = NewWorker("alice", 0);
  auto bob = NewWorker("bob", 1, {.hello_timeout = milliseconds(50)});
  alice->transport->AddPeer(bob->info);
  alice->Start();
  SentLog log;
  alice->transport->Send("bob", {"early", {}}, log.Next());
  RawClient silent(TcpOf(bob->info.address));
  grpc::ByteBuffer frames;
  EXPECT_FALSE(silent.Read(&frames));
  // Who did say hello may wait for the start.
  bob->Start();
  EXPECT_EQ(bob->mailbox.Await(1).at(0).message.header, "early");
  EXPECT_EQ(alice->mailbox.lost(), 0u);
}

}  // namespace
}  // namespace baton::rpc
