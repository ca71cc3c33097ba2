// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/grpc.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rpc/transports/framing.h"
#include "tests/rpc/grpc_worker.h"

namespace baton::rpc {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST(Grpc, OversizedMessagesAreRefusedOnBothSides) {
  auto alice = NewWorker("alice", 0, {.max_message_bytes = 100'000});
  auto bob = NewWorker("bob", 1);
  alice->Start();
  bob->Start();
  alice->transport->AddPeer(bob->info);
  bob->transport->AddPeer(alice->info);
  const Message big{"", {Tensor::Zeros({100'000})}};
  EXPECT_THAT(std::string(alice->SendTo("bob", big).message()),
              HasSubstr("at most 100000 are allowed"));
  const absl::Status theirs = bob->SendTo("alice", big);
  EXPECT_EQ(theirs.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(theirs.message()),
              HasSubstr("a message of 400000 bytes; worker alice takes at most "
                        "100000 (its --max_message_bytes)"));
  // Nothing else suffers.
  EXPECT_TRUE(bob->SendTo("alice", {"small", {}}).ok());
  EXPECT_EQ(alice->mailbox.Await(1).at(0).message.header, "small");
  EXPECT_EQ(alice->mailbox.lost(), 0u);
}

TEST(Grpc, AnotherBinaryIsRefusedInOneSentence) {
  auto alice = NewWorker("alice", 0, {.registry_digest = "one"});
  auto bob = NewWorker("bob", 1, {.registry_digest = "two"});
  alice->Start();
  bob->Start();
  bob->transport->AddPeer(alice->info);
  const absl::Status status = bob->SendTo("alice", {});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("worker bob runs a different binary than worker alice"),
            HasSubstr("(baton-run --worker_program=PROGRAM)")));
}

TEST(Grpc, ARefusalNamesTheExportsThatDiffer) {
  auto alice = NewWorker(
      "alice", 0,
      {.registry_digest = "one", .exports = {{1, "Stage"}, {2, "Scale"}}});
  auto bob = NewWorker("bob", 1,
                       {.registry_digest = "two",
                        .exports = {{1, "Stage"}, {3, "Shift"}, {4, "Turn"}}});
  alice->Start();
  bob->Start();
  bob->transport->AddPeer(alice->info);
  EXPECT_THAT(std::string(bob->SendTo("alice", {}).message()),
              HasSubstr("(worker alice exports Scale, which worker bob does "
                        "not; worker bob exports 2 types or functions that "
                        "worker alice does not)"));
}

TEST(Grpc, WhoOnlyLooksTalksToAnyBinary) {
  auto alice = NewWorker("alice", 0,
                         {.registry_digest = "one", .observer_digest = "look"});
  auto eve = NewWorker("eve", 1,
                       {.registry_digest = "look", .observer_digest = "look"});
  alice->Start();
  eve->Start();
  eve->transport->AddPeer(alice->info);
  EXPECT_EQ(eve->SendTo("alice", {"a", {}}), absl::OkStatus());
  alice->transport->AddPeer(eve->info);
  EXPECT_EQ(alice->SendTo("eve", {"b", {}}), absl::OkStatus());
  EXPECT_EQ(alice->mailbox.Await(1).size(), 1);
  EXPECT_EQ(eve->mailbox.Await(1).size(), 1);
}

TEST(Grpc, AnotherClusterIsRefused) {
  auto alice = NewWorker("alice", 0, {.cluster = "red"});
  auto bob = NewWorker("bob", 1, {.cluster = "blue"});
  alice->Start();
  bob->Start();
  bob->transport->AddPeer(alice->info);
  EXPECT_THAT(std::string(bob->SendTo("alice", {}).message()),
              HasSubstr("cluster \"blue\""));
}

TEST(Grpc, AWorkerThatStartedAgainIsNotTakenForTheOldOne) {
  auto alice = NewWorker("alice", 0);
  auto bob = NewWorker("bob", 1);
  alice->Start();
  bob->Start();
  WorkerInfo old = bob->info;
  old.incarnation = 123456;
  alice->transport->AddPeer(old);
  const absl::Status status = alice->SendTo("bob", {});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has started again"));
}

TEST(Grpc, AnUnknownIncarnationIsLearned) {
  auto alice = NewWorker("alice", 0);
  auto bob = NewWorker("bob", 1);
  alice->Start();
  bob->Start();
  alice->transport->AddPeer({"bob", Rank{1}, 0, TcpOf(bob->info.address)});
  ASSERT_TRUE(alice->SendTo("bob", {}).ok());
  bob->mailbox.Await(1);
  ASSERT_TRUE(bob->SendTo("alice", {}).ok());
  EXPECT_EQ(alice->mailbox.Await(1).at(0).from.incarnation,
            bob->info.incarnation);
}

TEST(Grpc, APeerThatIsNotThereIsNamed) {
  // Nobody is given a port below 1024 by chance.
  const std::string address = "127.0.0.1:1";
  auto alice = NewWorker("alice", 0, {.connect_timeout = milliseconds(200)});
  alice->Start();
  alice->transport->AddPeer({"bob", Rank{1}, 7, address});
  const absl::Status status = alice->SendTo("bob", {});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cannot reach worker bob at " + address));
}

TEST(Grpc, ABusyPortIsNamed) {
  auto alice = NewWorker("alice", 0);
  const std::string address = TcpOf(alice->info.address);
  const absl::Status status = MakeGrpcTransport({.listen = address}).status();
  const std::string port = address.substr(address.rfind(':') + 1);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("cannot listen on ", address, ": port ",
                                     port, " is in use")));
  for (const std::string bad : {"", "nonsense", "127.0.0.1:99999", "h:x",
                                "[]:80", "[:80", "[[]:80", "a]:80"}) {
    EXPECT_FALSE(MakeGrpcTransport({.listen = bad}).ok()) << bad;
  }
}

TEST(Grpc, TheSocketIsPrivateAndGoesWithTheTransport) {
  auto alice = NewWorker("alice", 0);
  const std::string address = alice->info.address;
  EXPECT_TRUE(absl::StartsWith(address, "127.0.0.1:")) << address;
  EXPECT_THAT(address, ::testing::Not(HasSubstr(":0;")));
  const size_t at = address.find(";unix:");
  ASSERT_NE(at, std::string::npos);
  const std::string path = address.substr(at + 6);
  const std::string directory = path.substr(0, path.rfind('/'));
  struct stat info;
  ASSERT_EQ(stat(directory.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  alice.reset();
  EXPECT_NE(stat(directory.c_str(), &info), 0);
}

TEST(Grpc, TheSocketIsEnoughAndTcpIsEnough) {
  auto alice = NewWorker("alice", 0);
  auto bob = NewWorker("bob", 1);
  alice->Start();
  bob->Start();
  WorkerInfo info = bob->info;
  info.address = info.address.substr(info.address.find("unix:"));
  alice->transport->AddPeer(info);
  EXPECT_TRUE(alice->SendTo("bob", {}).ok());
  auto carol = NewWorker("carol", 2);
  carol->Start();
  info.address = TcpOf(bob->info.address) + ";unix:/nowhere/s";
  carol->transport->AddPeer(info);
  EXPECT_TRUE(carol->SendTo("bob", {}).ok());
}

TEST(Grpc, HealthFollowsTheLifeOfTheWorker) {
  auto alice = NewWorker("alice", 0);
  const auto channel = grpc::CreateChannel(TcpOf(alice->info.address),
                                           grpc::InsecureChannelCredentials());
  // HealthCheckResponse{status}: 1 is serving, 2 is not serving.
  const auto check = [&]() -> int {
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    grpc::CompletionQueue queue;
    grpc::Slice slice("");
    const grpc::ByteBuffer request(&slice, 1);
    auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check",
                                      request, &queue);
    call->StartCall();
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->Finish(&answer, &status, nullptr);
    void* tag;
    bool ok;
    queue.Next(&tag, &ok);
    if (!status.ok()) return -1;
    FrameReader in(answer);
    std::string bytes(in.remaining(), '\0');
    in.Read(bytes.data(), bytes.size());
    return bytes.size() == 2 && bytes[0] == 0x08 ? bytes[1] : 0;
  };
  EXPECT_EQ(check(), 2);
  alice->Start();
  EXPECT_EQ(check(), 1);
  alice->transport->Shutdown(milliseconds(0));
  EXPECT_EQ(check(), -1);
}

}  // namespace
}  // namespace baton::rpc
