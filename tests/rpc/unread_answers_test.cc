// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What a worker costs that was let in, speaks, and reads nothing.

#include <gmock/gmock.h>

#include <latch>
#include <map>

#include "rpc/agent.h"
#include "rpc/frames.h"
#include "rpc/wire.pb.h"
#include "tests/rpc/grpc_worker.h"
#include "tests/rpc/raw_client.h"
#include "tests/support/status_matchers.h"
#include "tests/support/within.h"

namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using rpc::FrameKind;
using rpc::Rank;
using rpc::internal::RequestFrame;
using rpc::internal::ResponseFrame;

constexpr auto kUnreadPatience = 30s;
constexpr int64_t kAnswerLetters = 60'000;  // fits beside a control frame

// Keeps its thread for as long as it takes, unlike a Gate.
std::latch* unread_gate = nullptr;
int AwaitUnreadGate() {
  unread_gate->wait();
  return 1;
}
std::string AnswerLetters(int64_t count) {
  return std::string(static_cast<size_t>(count), 'x');
}

// Mallory of `alice`, on a stream of her own; never opens one for what is
// large.
class Mute {
 public:
  explicit Mute(const rpc::Agent& alice)
      : client_(rpc::TcpOf(alice.self().address)) {
    rpc::wire::Hello hello = rpc::MakeHello(
        {.lease = {}}, {"mallory", Rank{5}, 99, "127.0.0.1:1"}, alice.self());
    hello.set_attempt(1);
    client_.Write(rpc::Encode(hello));
    const auto answer = client_.ReadAnswer();
    EXPECT_THAT(answer, IsOk());
    EXPECT_EQ(answer->verdict(), rpc::wire::VERDICT_OK) << answer->text();
  }

  template <auto kFunction, typename... Args>
  std::string RequestFor(const Args&... args) {
    rpc::Encoder encoder;
    (encoder.Put(args), ...);
    RequestFrame frame;
    frame.epoch = 1;
    frame.call = ++calls_;
    frame.type = rpc::internal::FunctionId<kFunction>();
    frame.arguments = std::move(encoder.bytes());
    frame.timeout_us = -1;
    const std::string header =
        EncodeFrame(rpc::internal::FrameKind::kRequest, frame);
    rpc::wire::MessageMeta meta;
    meta.set_header_size(header.size());
    std::string bytes;
    rpc::AppendFrameHeader(
        {FrameKind::kMessage, static_cast<uint32_t>(meta.ByteSizeLong()),
         header.size()},
        bytes);
    return bytes + meta.SerializeAsString() + header;
  }
  void Write(const std::string& bytes) { client_.WriteBytes(bytes); }

  // What became of the calls, once all have been answered.
  std::map<StatusCode, int> ReadAll() {
    std::map<StatusCode, int> outcomes;
    grpc::ByteBuffer buffer;
    for (uint64_t read = 0; read < calls_ && client_.Read(&buffer);) {
      rpc::FrameReader in(buffer);
      while (in.remaining() > 0) {
        const auto head = in.ReadHeader();
        EXPECT_THAT(head, IsOk());
        std::string meta(head->meta_bytes, '\0');
        std::string header(head->payload_bytes, '\0');
        in.Read(meta.data(), meta.size());
        in.Read(header.data(), header.size());
        if (head->kind != FrameKind::kMessage) continue;
        const auto frame =
            rpc::internal::DecodeFrame<ResponseFrame>(std::move(header));
        EXPECT_THAT(frame, IsOk());
        ++outcomes[frame->status.code()];
        ++read;
      }
    }
    return outcomes;
  }

 private:
  rpc::RawClient client_;
  uint64_t calls_ = 0;
};

class UnreadAnswers : public ::testing::Test {
 protected:
  void StartAlice(rpc::AgentOptions options) {
    rpc::Registry registry;
    registry.AddFunction<&AwaitUnreadGate>();
    registry.AddFunction<&AnswerLetters>();
    auto transport =
        rpc::MakeGrpcTransport({.unix_socket = false, .lease = 60s});
    ASSERT_THAT(transport, IsOk());
    options.self = {"alice", Rank{0}, 7, (*transport)->address()};
    options.lease = 60s;
    auto agent = rpc::Agent::Start(std::move(options), std::move(registry),
                                   *std::move(transport));
    ASSERT_THAT(agent, IsOk());
    alice_ = *std::move(agent);
  }
  bool AwaitServed(uint64_t calls) {
    return Within(kUnreadPatience,
                  [&] { return alice_->GetDebugInfo().calls_served >= calls; });
  }

  void OpenGate() {
    if (!gate_.try_wait()) gate_.count_down();
  }
  ~UnreadAnswers() override { OpenGate(); }

  std::latch gate_{1};
  std::unique_ptr<rpc::Agent> alice_;
};

TEST_F(UnreadAnswers, HoldThePlacesOfTheirCalls) {
  constexpr int kCalls = 200;
  StartAlice({.self = {}, .max_calls_per_peer = 8});
  Mute mallory(*alice_);
  for (uint64_t call = 1; call <= kCalls; ++call) {
    mallory.Write(mallory.RequestFor<&AnswerLetters>(kAnswerLetters));
    ASSERT_TRUE(AwaitServed(call));
  }
  const auto outcomes = mallory.ReadAll();
  // Some fit into the sockets.
  EXPECT_LT(outcomes.at(StatusCode::kOk), 100);
  EXPECT_EQ(outcomes.at(StatusCode::kOk) +
                outcomes.at(StatusCode::kResourceExhausted),
            kCalls);
  // Once they have been read there is room again.
  mallory.Write(mallory.RequestFor<&AnswerLetters>(kAnswerLetters));
  ASSERT_TRUE(AwaitServed(kCalls + 1));
}

// Those that wait when it has become too much do not run.
TEST_F(UnreadAnswers, CountByTheirBytes) {
  constexpr int kCalls = 200;
  unread_gate = &gate_;
  StartAlice(
      {.self = {}, .worker_threads = 1, .max_call_bytes_per_peer = 1'000'000});
  Mute mallory(*alice_);
  mallory.Write(mallory.RequestFor<&AwaitUnreadGate>());
  for (int call = 1; call < kCalls; ++call)
    mallory.Write(mallory.RequestFor<&AnswerLetters>(kAnswerLetters));
  ASSERT_TRUE(Within(kUnreadPatience, [&] {
    return alice_->GetDebugInfo().calls_served == 0 &&
           alice_->GetDebugInfo().incoming.size() == kCalls;
  }));
  OpenGate();
  ASSERT_TRUE(AwaitServed(kCalls));
  const auto outcomes = mallory.ReadAll();
  EXPECT_LT(outcomes.at(StatusCode::kOk), 120);
  EXPECT_EQ(outcomes.at(StatusCode::kOk) +
                outcomes.at(StatusCode::kResourceExhausted),
            kCalls);
}

// Refusals that nobody reads are answers as well.
TEST_F(UnreadAnswers, ThatRefuseEndTheConnectionWhenTheyAreTooMany) {
  unread_gate = &gate_;
  StartAlice({.self = {},
              .worker_threads = 1,
              .max_calls_per_peer = 1,
              .max_replies_per_peer = 2'000});
  const Promise<std::string> lost;
  alice_->WatchMembers([lost](const rpc::MemberEvent& event) {
    if (event.kind != rpc::MemberEvent::Kind::kJoined)
      lost.Set(std::string(event.cause.message()));
  });
  Mute mallory(*alice_);
  mallory.Write(mallory.RequestFor<&AwaitUnreadGate>());
  // The sockets take some.
  constexpr size_t kPerWrite = 1'000;
  for (size_t sent = 0; sent < 200'000 && !lost.future().ready();
       sent += kPerWrite) {
    std::string many;
    for (size_t i = 0; i < kPerWrite; ++i)
      many += mallory.RequestFor<&AnswerLetters>(int64_t{1});
    mallory.Write(many);
  }
  const auto why = lost.future().Await(kUnreadPatience);
  ASSERT_THAT(why, IsOk());
  EXPECT_THAT(*why, ::testing::HasSubstr("severed"));
  OpenGate();
}

}  // namespace
}  // namespace baton::testing
