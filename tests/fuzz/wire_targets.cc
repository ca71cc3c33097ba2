// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/status.h"
#include "rpc/call_proof.h"
#include "rpc/rendezvous.pb.h"
#include "rpc/rendezvous_groups.h"
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
    BATON_CHECK(ours != challenge->proof());
  }
  const auto hello = rpc::ParseHello(bytes);
  if (!hello.ok()) return answer.ok() || challenge.ok() || proof.ok();
  (void)rpc::Judge({}, Alice(), *hello);
  const auto now = std::chrono::steady_clock::now();
  for (const milliseconds own : {milliseconds(0), milliseconds(2000)}) {
    rpc::FailureDetector failure_detector(own, milliseconds(hello->lease_ms()),
                                          now);
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
  BATON_CHECK(same.ok() &&
              same->SerializeAsString() == hello->SerializeAsString());
  return true;
}

// Requests to one rendezvous, whose clock jumps.
class RendezvousRequests {
 public:
  explicit RendezvousRequests(Input& input) : input_(input) {}
  ~RendezvousRequests() {
    groups_.Close();
    BATON_CHECK(asked_ == answered_);
  }

  bool AskedEnough() const { return asked_ >= 64; }
  // Returns false unless the request can be read.
  template <typename Request, typename Answer>
  bool Ask() {
    Request request;
    if (!Parse(input_, request)) return false;
    ++asked_;
    const auto answer = std::make_shared<Answer>();
    auto cancel = groups_.Handle(
        request, answer.get(),
        [this, answer](const absl::Status&) { ++answered_; }, now_);
    if (cancel != nullptr) cancels_.push_back(std::move(cancel));
    return true;
  }
  void CancelOne() {
    if (!cancels_.empty()) cancels_[input_.Byte() % cancels_.size()]();
  }
  void Jump() {
    now_ += milliseconds(100) * input_.Byte();
    groups_.Reap(now_, milliseconds(100));
  }

 private:
  Input& input_;
  rpc::RendezvousGroups groups_;
  rpc::RendezvousGroups::Clock::time_point now_ =
      rpc::RendezvousGroups::Clock::now();
  std::vector<rpc::RendezvousGroups::Cancel> cancels_;
  size_t asked_ = 0, answered_ = 0;
};

bool Rendezvous(const std::string& bytes) {
  namespace wire = rpc::wire;
  Input input(bytes);
  RendezvousRequests requests(input);
  bool parsed = true;
  while (!input.empty() && !requests.AskedEnough()) {
    switch (input.Byte() % 6) {
      case 0:
        parsed &= requests.Ask<wire::JoinRequest, wire::JoinAnswer>();
        break;
      case 1:
        parsed &= requests.Ask<wire::LeaveRequest, wire::LeaveAnswer>();
        break;
      case 2:
        parsed &= requests.Ask<wire::RenewRequest, wire::RenewAnswer>();
        break;
      case 3:
        requests.CancelOne();
        break;
      case 4:
        requests.Jump();
        break;
      case 5: {
        wire::RenewAnswer answer;
        parsed &= Parse(input, answer);
        for (const wire::Worker& member : answer.members()) {
          const auto worker = rpc::FromWire(member);
          if (!worker.ok()) continue;
          wire::Worker again;
          rpc::ToWire(*worker, again);
          BATON_CHECK(*rpc::FromWire(again) == *worker);
        }
        break;
      }
    }
  }
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
