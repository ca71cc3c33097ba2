// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "core/status.h"
#include "rpc/call_proof.h"
#include "rpc/rendezvous.pb.h"
#include "rpc/rendezvous_groups.h"
#include "rpc/rendezvous_messages.h"
#include "rpc/transports/failure_detector.h"
#include "rpc/transports/framing.h"
#include "rpc/transports/hello.h"
#include "rpc/transports/receiver.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

// What comes before an agent sees a message.
namespace baton::fuzz {
namespace {

using std::chrono::milliseconds;

constexpr size_t kMaxMessageBytes = size_t{1} << 20;

// In two slices, so that values lie across their border.
grpc::ByteBuffer BufferOf(const std::string& bytes) {
  const size_t half = bytes.size() / 2;
  const grpc::Slice slices[2] = {grpc::Slice(bytes.substr(0, half)),
                                 grpc::Slice(bytes.substr(half))};
  return grpc::ByteBuffer(slices, 2);
}

void CheckMessage(const rpc::Message& message, size_t& bytes) {
  bytes += message.header.size();
  for (const Tensor& tensor : message.tensors) {
    BATON_CHECK(tensor.defined());
    bytes += tensor.nbytes();
  }
}

const std::string kToken(64, '7');

rpc::WorkerInfo Alice() { return {"alice", rpc::Rank{0}, 7, "127.0.0.1:1"}; }

template <typename T>
bool Parse(Input& input, T& message) {
  const std::string bytes = input.Chunk();
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace

// A sequence of gRPC messages. Before each one, a byte says whether the peer is
// authenticated, and then comes the message's length.
bool Frames(const std::string& bytes) {
  Input input(bytes);
  rpc::Receiver receiver(kMaxMessageBytes);
  while (!input.empty()) {
    const bool authenticated = input.Byte() != 0;
    const grpc::ByteBuffer buffer = BufferOf(input.Chunk());
    rpc::Receiver::Batch batch;
    const absl::Status status = authenticated
                                    ? receiver.Consume(buffer, nullptr, batch)
                                    : receiver.ConsumeControls(buffer, batch);
    size_t total = 0;
    for (const rpc::Message& message : batch.messages) {
      CheckMessage(message, total);
    }
    BATON_CHECK(!status.ok() || total == batch.bytes);
    if (!status.ok()) return false;
  }
  return true;
}

bool Hello(const std::string& bytes) {
  const auto answer = rpc::ParseHelloAnswer(bytes);
  if (answer.ok()) (void)rpc::Encode(*answer);
  const auto proof = rpc::ParseProof(bytes);
  const auto challenge = rpc::ParseChallenge(bytes);
  if (challenge.ok()) {
    (void)rpc::Encode(*challenge);
    const std::string ours =
        rpc::ProofOf(rpc::HelloRole::kDialed, kToken, bytes, *challenge);
    BATON_CHECK(ours != challenge->proof);
  }
  const auto hello = rpc::ParseHello(bytes);
  if (!hello.ok()) return answer.ok() || challenge.ok() || proof.ok();
  (void)rpc::Judge({}, Alice(), *hello);
  const auto now = std::chrono::steady_clock::now();
  for (const milliseconds own : {milliseconds(0), milliseconds(2000)}) {
    rpc::FailureDetector failure_detector(own, hello->lease, now);
    failure_detector.Beat(now + failure_detector.interval());
  }
  // What was understood is what would be said.
  const grpc::ByteBuffer again = rpc::Encode(*hello);
  rpc::FrameReader in(again);
  const auto header = in.ReadHeader();
  BATON_CHECK(header.ok());
  std::string meta(header->meta_bytes, '\0');
  BATON_CHECK(in.Read(meta.data(), meta.size()));
  const auto same = rpc::ParseHello(meta);
  BATON_CHECK(same.ok() && same->self == hello->self &&
              same->lease == hello->lease);
  return true;
}

// Requests to one rendezvous, whose clock jumps.
bool Rendezvous(const std::string& bytes) {
  using Groups = rpc::RendezvousGroups;
  namespace wire = rpc::wire;
  Input input(bytes);
  Groups groups;
  Groups::Clock::time_point now = Groups::Clock::now();
  size_t entered = 0, answered = 0, asked = 0, heard = 0;
  bool parsed = true;
  while (!input.empty() && entered + asked < 64) {
    switch (input.Byte() % 6) {
      case 0: {
        wire::JoinRequest join;
        if (!(parsed &= Parse(input, join))) break;
        const auto options = rpc::internal::FromWire(join);
        if (!options.ok()) break;
        ++entered;
        groups.Enter(*options,
                     [&answered](const Groups::Result&) { ++answered; });
        break;
      }
      case 1: {
        wire::LeaveRequest leave;
        if (!(parsed &= Parse(input, leave))) break;
        (void)groups.Leave(leave.cluster(), leave.name(), leave.incarnation());
        break;
      }
      case 2: {
        wire::RenewRequest renew;
        if (!(parsed &= Parse(input, renew))) break;
        if (const auto seat = rpc::internal::FromWire(renew.seat()); seat.ok())
          (void)groups.TakeBack(*seat, renew.version(), now);
        ++asked;
        groups.Renew(
            renew.cluster(), renew.name(), renew.incarnation(), renew.version(),
            now + milliseconds(renew.wait_ms() % 1000),
            [&heard](const auto& change) {
              ++heard;
              if (!change.ok()) return;
              wire::RenewAnswer answer;
              rpc::internal::ToWire(*change, answer);
            },
            now);
        break;
      }
      case 3: {
        wire::JoinRequest join;
        if (!(parsed &= Parse(input, join))) break;
        const auto options = rpc::internal::FromWire(join);
        if (!options.ok()) break;
        groups.Expire(options->cluster, options->self);
        groups.Cancel(options->cluster, options->self);
        break;
      }
      case 4:
        now += milliseconds(100) * input.Byte();
        groups.Reap(now, milliseconds(100));
        break;
      case 5: {
        wire::RenewAnswer answer;
        if (!(parsed &= Parse(input, answer))) break;
        const auto change = rpc::internal::FromWire(answer);
        if (!change.ok()) break;
        wire::RenewAnswer again;
        rpc::internal::ToWire(*change, again);
        BATON_CHECK(again.members_size() == answer.members_size() &&
                    again.departed_size() == answer.departed_size());
        break;
      }
    }
  }
  groups.Close();
  BATON_CHECK(entered == answered);
  BATON_CHECK(asked == heard);
  return parsed;
}

// What callers of a rendezvous show, one who knows the token among others, and
// what he is answered.
bool CallProof(const std::string& bytes) {
  using rpc::internal::CallGuard;
  Input input(bytes);
  CallGuard guard(kToken);
  rpc::internal::CallProver prover(kToken);
  CallGuard::Clock::time_point now = CallGuard::Clock::now();
  std::string answer;
  bool believed = true;
  while (!input.empty()) {
    switch (input.Byte() % 4) {
      case 0: {
        const std::string shown = input.Chunk(), asked = input.Chunk();
        BATON_CHECK(!guard.Check(shown, asked, now, &answer).ok());
        believed = false;
        break;
      }
      case 1: {
        const std::string shown = input.Chunk();
        BATON_CHECK(!prover.CheckAnswer(shown).ok());
        (void)prover.TakeChallenge(shown);
        believed = false;
        break;
      }
      case 2: {
        const std::string asked = input.Chunk();
        std::string shown = *prover.Show(asked);
        if (!guard.Check(shown, asked, now, &answer).ok()) {
          BATON_CHECK(prover.TakeChallenge(answer));
          shown = *prover.Show(asked);
          BATON_CHECK(guard.Check(shown, asked, now, &answer).ok());
        }
        BATON_CHECK(prover.CheckAnswer(answer).ok());
        BATON_CHECK(!guard.Check(shown, asked, now, &answer).ok());
        break;
      }
      case 3:
        now += std::chrono::seconds(input.Byte());
        break;
    }
  }
  return believed;
}

}  // namespace baton::fuzz
