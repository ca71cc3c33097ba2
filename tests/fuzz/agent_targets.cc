// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>

#include "core/status.h"
#include "rpc/frames.h"
#include "rpc/ownership.h"
#include "rpc/peers.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

// What an agent reads in the header of a message.
namespace baton::fuzz {
namespace {

namespace internal = rpc::internal;
using internal::ControlFrame;
using internal::Ownership;
using rpc::Decoder;
using rpc::Encoder;
using rpc::WorkerInfo;

const WorkerInfo kAlice{"alice", rpc::Rank{0}, 1, "127.0.0.1:1"};
const WorkerInfo kBob{"bob", rpc::Rank{1}, 2, "127.0.0.1:2"};

// Maps without order, and the payloads of a status, come in any order.
bool AreAlike(std::string one, std::string other) {
  std::sort(one.begin(), one.end());
  std::sort(other.begin(), other.end());
  return one == other;
}

// Whatever could be read is written and read again.
template <typename Frame>
bool Header(const std::string& bytes) {
  const auto frame = internal::DecodeFrame<Frame>(bytes);
  if (!frame.ok()) return false;
  const std::string once =
      internal::EncodeFrame(internal::FrameKind::kRequest, *frame);
  const auto again = internal::DecodeFrame<Frame>(once);
  BATON_CHECK(again.ok());
  BATON_CHECK(AreAlike(
      once, internal::EncodeFrame(internal::FrameKind::kRequest, *again)));
  return true;
}

// A value that holds itself, as a graph of modules may.
struct Tree {
  std::string name;
  std::vector<Tree> children;
  static constexpr auto Fields = std::tuple{&Tree::name, &Tree::children};
};

template <typename T>
bool Value(const std::string& bytes, int tensors) {
  Decoder decoder(bytes, std::vector<Tensor>(static_cast<size_t>(tensors),
                                             Tensor::Zeros({2})));
  const T value = decoder.Get<T>();
  if (!decoder.Finish().ok()) return false;
  Encoder encoder, twice;
  encoder.Put(value);
  BATON_CHECK(encoder.status().ok());
  Decoder again(encoder.bytes(), encoder.tensors());
  twice.Put(again.Get<T>());
  BATON_CHECK(again.Finish().ok());
  BATON_CHECK(AreAlike(encoder.bytes(), twice.bytes()));
  BATON_CHECK(encoder.tensors().size() == twice.tensors().size());
  return true;
}

struct QuietPort final : Ownership::Port {
  bool SendControl(const WorkerInfo&, internal::ControlItem,
                   std::function<void()> acked) override {
    if (acked) acked();
    return true;
  }
  absl::Status CheckWorker(const WorkerInfo& worker) override {
    return worker.name == kBob.name ? absl::OkStatus()
                                    : absl::NotFoundError("nobody");
  }
  void Discard(std::vector<std::shared_ptr<void>>) override {}
  void OnOwnershipChanged() override {}
};

template <typename Frame>
std::optional<Frame> Read(Input& input, bool& read) {
  auto frame = internal::DecodeFrame<Frame>(" " + input.Chunk());
  read &= frame.ok();
  if (!frame.ok()) return std::nullopt;
  return *std::move(frame);
}

// alice's tables, moved by what bob says.
struct Owner {
  std::shared_ptr<QuietPort> port = std::make_shared<QuietPort>();
  std::shared_ptr<Ownership> table = std::make_shared<Ownership>(
      kAlice, std::weak_ptr<internal::AgentCore>(), port);
  internal::Peers peers{kAlice};
  std::vector<internal::HandlePtr> handles;

  void Take(const std::vector<internal::Transfer>& transfers) {
    auto imported = table->Import(kBob, transfers);
    if (!imported.ok()) return;
    for (internal::HandlePtr& handle : *imported) {
      if (handle != nullptr) handles.push_back(std::move(handle));
    }
  }
};

}  // namespace

bool Headers(const std::string& bytes) {
  const bool read[] = {Header<internal::RequestFrame>(bytes),
                       Header<internal::ResponseFrame>(bytes),
                       Header<ControlFrame>(bytes),
                       Header<internal::CancelFrame>(bytes)};
  return std::count(std::begin(read), std::end(read), true) > 0;
}

bool Arguments(const std::string& bytes) {
  Input input(bytes);
  const int kind = input.Byte() % 12;
  const int tensors = input.Byte() % 4;
  const std::string rest = input.Rest();
  using rpc::Codec;
  static constexpr std::array<bool (*)(const std::string&, int), 12> kReaders =
      {&Value<std::map<std::string, std::vector<int64_t>>>,
       &Value<std::vector<std::vector<std::string>>>,
       &Value<std::optional<std::pair<Tensor, bool>>>,
       &Value<std::vector<Tensor>>,
       &Value<absl::StatusOr<std::vector<float>>>,
       &Value<std::tuple<int8_t, double, std::string>>,
       &Value<std::vector<WorkerInfo>>,
       &Value<std::pair<Shape, Device>>,
       &Value<std::array<uint16_t, 5>>,
       &Value<Tree>,
       &Value<std::unordered_map<uint32_t, std::optional<Tree>>>,
       &Value<std::chrono::milliseconds>};
  return kReaders[static_cast<size_t>(kind)](rest, tensors);
}

bool Control(const std::string& bytes) {
  Input input(bytes);
  Owner owner;
  bool read = true;
  owner.peers.Add(kBob);
  const auto now = Ownership::Clock::now();
  while (!input.empty()) {
    switch (input.Byte() % 6) {
      case 0:
        if (const auto frame = Read<ControlFrame>(input, read)) {
          const auto heard = owner.peers.Observe(kBob, {.epoch = frame->epoch});
          if (heard.spoken == internal::Peers::Spoken::kEarlier) break;
          for (const auto& item :
               owner.peers.Receive(*heard.peer, *frame).items) {
            owner.table->OnControl(kBob, item);
          }
        }
        break;
      case 1:
        if (const auto frame = Read<internal::RequestFrame>(input, read)) {
          owner.Take(frame->transfers);
          const bool made =
              owner.table
                  ->BeginCreation(frame->result, frame->result_fork, kBob, "T")
                  .ok();
          if (made && frame->index % 2 == 0) {
            owner.table->FinishCreation(
                frame->result, internal::AnyValue{std::make_shared<int>(1)});
          }
          owner.table->Resolve(frame->object, [](const auto&) {});
        }
        break;
      case 2:
        if (const auto frame = Read<internal::ResponseFrame>(input, read)) {
          owner.Take(frame->transfers);
        }
        break;
      case 3:
        if (!owner.handles.empty()) {
          const size_t one = input.Byte() % owner.handles.size();
          (void)owner.table->Export({owner.handles[one]}, kBob, now);
          owner.handles.erase(owner.handles.begin() +
                              static_cast<std::ptrdiff_t>(one));
        }
        break;
      case 4:
        owner.table->Tick(now + std::chrono::seconds(input.Byte()),
                          std::chrono::seconds(1));
        if (const auto bob = owner.peers.Current(kBob)) {
          while (owner.peers.Take(*bob, std::chrono::milliseconds(1))) {
          }
        }
        break;
      case 5:
        owner.table->OnWorkerGone(kBob, absl::UnavailableError("gone"));
        owner.peers.Remove(kBob, absl::UnavailableError("gone"));
        owner.peers.Add(kBob);
        break;
    }
  }
  owner.table->Close(absl::CancelledError("the end"));
  BATON_CHECK(owner.table->counts().objects == 0);
  return read;
}

}  // namespace baton::fuzz
