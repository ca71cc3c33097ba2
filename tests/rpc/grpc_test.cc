// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/grpc.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/stat.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rpc/transports/framing.h"
#include "rpc/transports/hello.h"
#include "rpc/transports/lane.h"
#include "tests/rpc/transport_conformance.h"
#include "tests/support/child_process.h"
#include "tests/support/program_path.h"

namespace baton::rpc {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

std::unique_ptr<TestWorker> NewWorker(const std::string& name, int rank,
                                      const GrpcOptions& options = {}) {
  auto transport = MakeGrpcTransport(options);
  EXPECT_TRUE(transport.ok()) << transport.status();
  return std::make_unique<TestWorker>(name, rank, *std::move(transport));
}

std::string TcpOf(const std::string& address) {
  return address.substr(0, address.find(';'));
}

// Says what it likes on a lane, and hears how that ends.
class RawClient {
 public:
  explicit RawClient(const std::string& target)
      : stub_(grpc::CreateChannel(target, grpc::InsecureChannelCredentials())) {
    context_.set_deadline(std::chrono::system_clock::now() + kPatience);
    stream_ = stub_.PrepareCall(&context_, kLaneMethod, &queue_);
    stream_->StartCall(Tag());
    EXPECT_TRUE(Next());
  }
  ~RawClient() {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag;
    bool ok;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  void Write(const grpc::ByteBuffer& frames) {
    stream_->Write(frames, Tag());
    Next();
  }
  void WriteBytes(const std::string& bytes) {
    grpc::Slice slice(bytes);
    Write(grpc::ByteBuffer(&slice, 1));
  }
  // False when the other side has ended the stream.
  bool Read(grpc::ByteBuffer* frames) {
    stream_->Read(frames, Tag());
    return Next();
  }
  absl::StatusOr<HelloAnswer> ReadAnswer() {
    grpc::ByteBuffer frames;
    if (!Read(&frames)) return absl::UnavailableError("ended");
    FrameReader in(frames);
    const auto header = in.ReadHeader();
    if (!header.ok()) return header.status();
    std::string meta(header->meta_bytes, '\0');
    in.Read(meta.data(), meta.size());
    return ParseHelloAnswer(meta);
  }

 private:
  static void* Tag() { return nullptr; }
  bool Next() {
    void* tag;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

Hello HelloTo(const WorkerInfo& to) {
  Hello hello = MakeHello({}, {"mallory", Rank{5}, 99, "127.0.0.1:1"}, to);
  hello.attempt = 1;
  return hello;
}

TEST(Grpc, GarbageInsteadOfAHelloEndsThatConnectionOnly) {
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
    EXPECT_EQ(answer->verdict, Verdict::kRefused);
    EXPECT_THAT(answer->text, HasSubstr("no valid hello"));
  }
  auto bob = NewWorker("bob", 1);
  bob->Start();
  bob->transport->AddPeer(alice->info);
  EXPECT_TRUE(bob->SendTo("alice", {"fine", {}}).ok());
}

TEST(Grpc, GarbageAfterTheHelloBreaksThatConnectionOnly) {
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
  size_t lost = 0;
  for (const std::string& attack : attacks) {
    RawClient client(TcpOf(alice->info.address));
    Hello hello = HelloTo(alice->info);
    hello.attempt = ++lost;
    client.Write(Encode(hello));
    ASSERT_EQ(client.ReadAnswer()->verdict, Verdict::kOk);
    client.WriteBytes(attack);
    grpc::ByteBuffer rest;
    EXPECT_FALSE(client.Read(&rest));
    EXPECT_THAT(std::string(alice->mailbox.AwaitLost(lost).back().message()),
                HasSubstr("mallory: it sent what makes no sense"));
  }
  EXPECT_EQ(alice->mailbox.count(), 0u);
}

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
  bob->transport->Send("alice", big, nullptr);
  EXPECT_THAT(std::string(alice->mailbox.AwaitLost(1).at(0).message()),
              HasSubstr("100000"));
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
      HasSubstr("worker bob runs a different binary than worker alice"));
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

TEST(Grpc, AnotherVersionOrWorkerIsRefused) {
  auto alice = NewWorker("alice", 0);
  alice->Start();
  Hello hello = HelloTo(alice->info);
  hello.version = 99;
  RawClient old(TcpOf(alice->info.address));
  old.Write(Encode(hello));
  EXPECT_THAT(old.ReadAnswer()->text, HasSubstr("version 99"));
  hello = HelloTo(alice->info);
  hello.to_name = "bob";
  RawClient lost(TcpOf(alice->info.address));
  lost.Write(Encode(hello));
  EXPECT_EQ(lost.ReadAnswer()->verdict, Verdict::kNotMe);
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

TEST(Grpc, AnOldProcessThatWakesDoesNotBreakItsSuccessorsConnection) {
  auto alice = NewWorker("alice", 0);
  alice->Start();
  Hello hello = HelloTo(alice->info);
  RawClient old(TcpOf(alice->info.address));
  old.Write(Encode(hello));
  ASSERT_EQ(old.ReadAnswer()->verdict, Verdict::kOk);
  hello.self.incarnation = 100;
  RawClient successor(TcpOf(alice->info.address));
  successor.Write(Encode(hello));
  ASSERT_EQ(successor.ReadAnswer()->verdict, Verdict::kOk);
  alice->mailbox.AwaitLost(1);
  hello.self.incarnation = 99;
  hello.attempt = 7;
  RawClient woken(TcpOf(alice->info.address));
  woken.Write(Encode(hello));
  const auto answer = woken.ReadAnswer();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->verdict, Verdict::kRefused);
  EXPECT_THAT(answer->text, HasSubstr("has been replaced"));
  EXPECT_TRUE(alice->SendTo("mallory", {"still there", {}}).ok());
  grpc::ByteBuffer frames;
  EXPECT_TRUE(successor.Read(&frames));
  EXPECT_EQ(alice->mailbox.lost(), 1u);
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
  std::string address;
  {
    auto gone = NewWorker("bob", 1);
    address = gone->info.address;
  }
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
  for (const std::string bad : {"", "nonsense", "127.0.0.1:99999", "h:x"}) {
    EXPECT_FALSE(MakeGrpcTransport({.listen = bad}).ok()) << bad;
  }
}

TEST(Grpc, TheSocketIsPrivateAndGoesWithTheTransport) {
  auto alice = NewWorker("alice", 0);
  const std::string address = alice->info.address;
  EXPECT_TRUE(absl::StartsWith(address, "127.0.0.1:")) << address;
  EXPECT_THAT(address, testing::Not(HasSubstr(":0;")));
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

TEST(Grpc, AKilledProcessIsNoticedAtOnce) {
  ChildProcess child({testing::ProgramPath("echo_peer"), "bob"});
  const WorkerInfo bob{"bob", Rank{1}, 4711, child.ReadLine()};
  auto alice = NewWorker("alice", 0, {.reconnect_timeout = milliseconds(100)});
  alice->Start();
  alice->transport->AddPeer(bob);
  const Tensor tensor = Tensor::Arange(1 << 18);
  ASSERT_TRUE(alice->SendTo("bob", {"ping", {tensor}}).ok());
  EXPECT_EQ(alice->mailbox.Await(1).at(0).message.tensors.at(0).nbytes(),
            tensor.nbytes());
  const auto begin = std::chrono::steady_clock::now();
  child.Kill(SIGKILL);
  EXPECT_EQ(alice->mailbox.AwaitLost(1).at(0).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(2000));
  EXPECT_EQ(alice->SendTo("bob", {}).code(), absl::StatusCode::kUnavailable);
}

TEST(Grpc, AProcessKilledAmidATransferFailsIt) {
  ChildProcess child({testing::ProgramPath("echo_peer"), "bob"});
  const WorkerInfo bob{"bob", Rank{1}, 4711, child.ReadLine()};
  auto alice = NewWorker("alice", 0, {.reconnect_timeout = milliseconds(100)});
  alice->Start();
  alice->transport->AddPeer(bob);
  ASSERT_TRUE(alice->SendTo("bob", {"ping", {}}).ok());
  child.Kill(SIGSTOP);
  SentLog log;
  const Tensor large = Tensor::Zeros({64 << 18});
  for (int i = 0; i < 4; ++i) {
    alice->transport->Send("bob", {"", {large}}, log.Next());
  }
  child.Kill(SIGKILL);
  EXPECT_FALSE(log.Await(4).back().ok());
  alice->mailbox.AwaitLost(1);
}

// A peer that stops reading fills its own limit and no memory of ours; the
// limit pauses reading, and what it held back arrives later.
TEST(Grpc, WhoSaysNoHelloIsCutOff) {
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

TEST(Grpc, AShutdownDoesNotWaitForAPeerThatIsGone) {
  auto alice = NewWorker("alice", 0, {.reconnect_timeout = milliseconds(5000)});
  auto bob = NewWorker("bob", 1);
  alice->transport->AddPeer(bob->info);
  alice->Start();
  bob->Start();
  ASSERT_TRUE(alice->SendTo("bob", {"one", {}}).ok());
  bob.reset();
  alice->mailbox.AwaitLost(1);
  SentLog log;
  alice->transport->Send("bob", {"two", {}}, log.Next());
  const auto start = std::chrono::steady_clock::now();
  alice->transport->Shutdown(milliseconds(4000));
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(1000));
  EXPECT_EQ(log.Await(1).at(0).code(), absl::StatusCode::kUnavailable);
}

TEST(Grpc, ASlowHandlerPausesReading) {
  auto alice = NewWorker("alice", 0);
  auto bob = NewWorker("bob", 1, {.max_undelivered_bytes = 1 << 20});
  Mutex mutex;
  CondVar open;
  bool may_go = false;
  bob->mailbox.OnEach([&](const Mailbox::Letter&) {
    MutexLock lock(mutex);
    while (!may_go) open.Wait(mutex);
  });
  alice->Start();
  bob->Start();
  alice->transport->AddPeer(bob->info);
  SentLog log;
  constexpr size_t kCount = 40;
  for (size_t i = 0; i < kCount; ++i) {
    alice->transport->Send("bob", {"", {Tensor::Zeros({1 << 20})}}, log.Next());
  }
  log.Await(1);
  EXPECT_LT(log.count(), kCount);
  {
    MutexLock lock(mutex);
    may_go = true;
    open.NotifyAll();
  }
  EXPECT_EQ(bob->mailbox.Await(kCount).size(), kCount);
}

}  // namespace
}  // namespace baton::rpc
