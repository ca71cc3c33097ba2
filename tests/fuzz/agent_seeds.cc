// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What agents read: headers of messages, and arguments.

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "core/tensor.h"
#include "rpc/codec.h"
#include "rpc/frames.h"
#include "tests/fuzz/seeds.h"

namespace baton::fuzz {
namespace {

using rpc::internal::ControlFrame;
using rpc::internal::ControlKind;
using rpc::internal::EncodeFrame;
using rpc::internal::FrameKind;

void Agent() {
  const rpc::internal::Transfer transfer{{2, 3}, {2, 4}, 5, kBob};
  rpc::internal::RequestFrame request;
  request.to = 1;
  request.epoch = 1;
  request.call = 1;
  request.object = {1, 1};
  request.result = {2, 9};
  request.result_fork = {2, 10};
  request.transfers = {transfer};
  request.arguments = "arguments";
  request.may_stay = true;
  request.within = {{1, 5}, {2, 6}};
  const std::string asked = EncodeFrame(FrameKind::kRequest, request);
  Save("headers", "request", asked);
  rpc::internal::ResponseFrame response{.to = 1, .call = 1};
  response.status = absl::NotFoundError("gone");
  response.status.SetPayload("call", absl::Cord("worker"));
  response.transfers = {transfer};
  const std::string answered = EncodeFrame(FrameKind::kResponse, response);
  Save("headers", "response", answered);
  ControlFrame control{.to = 1, .epoch = 1, .first = 1, .items = {}};
  for (int kind = 1; kind <= 8; ++kind) {
    control.items.push_back({static_cast<ControlKind>(kind), {2, 9}, {2, 10}});
  }
  const std::string told = EncodeFrame(FrameKind::kControl, control);
  Save("headers", "control", told);
  Save("headers", "cancel",
       EncodeFrame(FrameKind::kCancel, rpc::internal::CancelFrame{1, 2}));
  const auto step = [](int kind, const std::string& frame) {
    return static_cast<char>(kind) + Chunk(frame.substr(1));
  };
  Save("control", "life",
       step(1, asked) + step(0, told) + step(2, answered) +
           std::string("\3\0\4\7\5", 5));
}

template <typename T>
void Argument(int kind, const std::string& name, const T& value) {
  rpc::Encoder encoder;
  encoder.Put(value);
  Save("arguments", name,
       std::string{static_cast<char>(kind),
                   static_cast<char>(encoder.tensors().size())} +
           encoder.bytes());
}

struct Tree {
  std::string name;
  std::vector<Tree> children;
  static constexpr auto Fields = std::tuple{&Tree::name, &Tree::children};
};

void Arguments() {
  const Tree tree{"root", {{"left", {}}, {"right", {{"leaf", {}}}}}};
  Argument(
      0, "map",
      std::map<std::string, std::vector<int64_t>>{{"a", {1, 2}}, {"b", {}}});
  Argument(1, "texts", std::vector<std::vector<std::string>>{{"x", ""}, {}});
  Argument(2, "optional", std::optional(std::pair(Tensor::Zeros({1}), true)));
  Argument(3, "tensors", std::vector<Tensor>{Tensor(), Tensor::Zeros({2})});
  Argument(4, "failure",
           absl::StatusOr<std::vector<float>>(absl::InternalError("why")));
  Argument(4, "floats", absl::StatusOr<std::vector<float>>({1, 2}));
  Argument(5, "tuple", std::tuple(int8_t{1}, 2.0, std::string("three")));
  Argument(6, "workers", std::vector<rpc::WorkerInfo>{kAlice, kBob});
  Argument(7, "shape", std::pair(Shape({2, 3}), Device::Cuda(1)));
  Argument(8, "array", std::array<uint16_t, 5>{1, 2, 3, 4, 5});
  Argument(9, "tree", tree);
  Argument(10, "trees",
           std::unordered_map<uint32_t, std::optional<Tree>>{{7, tree}});
}

}  // namespace

void SaveAgentSeeds() {
  Agent();
  Arguments();
}

}  // namespace baton::fuzz
