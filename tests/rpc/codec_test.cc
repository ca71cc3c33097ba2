// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "rpc/frames.h"
#include "tests/support/status_matchers.h"

namespace baton::testing {
namespace {

using absl::StatusCode;
using rpc::Decoder;
using rpc::Encoder;

struct Spec {
  int width = 0;
  std::string name;
  std::vector<double> rates;
  std::optional<bool> flag;
  static constexpr auto Fields =
      std::tuple{&Spec::width, &Spec::name, &Spec::rates, &Spec::flag};
  friend bool operator==(const Spec&, const Spec&) = default;
};
struct Tree {
  int value = 0;
  std::vector<Tree> children;
  static constexpr auto Fields() {
    return std::tuple{&Tree::value, &Tree::children};
  }
};
struct Empty {
  static constexpr auto Fields = std::tuple{};
};
enum class Color : uint8_t { kRed = 1, kBlue = 200 };

template <typename T>
T RoundTrip(const T& value) {
  Encoder encoder;
  encoder.Put(value);
  EXPECT_THAT(encoder.status(), IsOk());
  Decoder decoder(encoder.bytes(), encoder.tensors());
  T back = decoder.Get<T>();
  EXPECT_THAT(decoder.Finish(), IsOk());
  return back;
}
template <typename T>
void ExpectSame(const T& value) {
  EXPECT_EQ(RoundTrip(value), value);
}

TEST(Codec, KeepsNumbersStringsAndEnums) {
  ExpectSame(std::numeric_limits<int64_t>::min());
  ExpectSame(uint8_t{255});
  ExpectSame(-1.5);
  ExpectSame(3.25f);
  ExpectSame(true);
  ExpectSame(std::string("a\0b", 3));
  ExpectSame(std::string());
  ExpectSame(Color::kBlue);
  ExpectSame(std::chrono::milliseconds(7));
}

TEST(Codec, KeepsContainers) {
  ExpectSame(std::vector<int>{1, 2, 3});
  ExpectSame(std::vector<std::string>{"", "x"});
  ExpectSame(std::vector<bool>{true, false, true});
  ExpectSame(std::vector<std::vector<float>>{{}, {1}});
  ExpectSame(std::array<int, 2>{4, 5});
  ExpectSame(std::map<std::string, int>{{"a", 1}, {"b", 2}});
  ExpectSame(std::unordered_map<int, std::string>{{1, "a"}});
  ExpectSame(std::pair<int, std::string>{1, "a"});
  ExpectSame(std::tuple<int, bool, std::string>{1, true, "a"});
  ExpectSame(std::optional<int>());
  ExpectSame(std::optional<int>(4));
}

TEST(Codec, KeepsTypesOfTheFramework) {
  ExpectSame(Shape({2, 0, 3}));
  ExpectSame(Device::Cuda(3));
  ExpectSame(DType::kBF16);
  rpc::WorkerInfo worker;
  worker.name = "alice";
  worker.rank = rpc::Rank{3};
  worker.incarnation = ~0ull;
  worker.compute = {Device::Cuda(2), DType::kBF16, true, true};
  ExpectSame(worker);
  absl::Status status = absl::NotFoundError("gone");
  status.SetPayload("u", absl::Cord("p"));
  ExpectSame(status);
  ExpectSame(absl::OkStatus());
  EXPECT_EQ(*RoundTrip(absl::StatusOr<int>(4)), 4);
  EXPECT_EQ(RoundTrip(absl::StatusOr<int>(status)).status(), status);
}

TEST(Codec, KeepsStructsThatListTheirFields) {
  ExpectSame(Spec{3, "x", {0.5, 2}, true});
  Tree tree{1, {{2, {}}, {3, {{4, {}}}}}};
  EXPECT_EQ(RoundTrip(tree).children[1].children[0].value, 4);
  EXPECT_EQ(RoundTrip(std::vector<Empty>(3)).size(), 3u);
}

TEST(Codec, TensorsTravelBesideTheBytes) {
  Tensor x = Tensor::Arange(4);
  Encoder encoder;
  encoder.Put(std::vector<Tensor>{x, Tensor(), x});
  EXPECT_LT(encoder.bytes().size(), 16u);
  ASSERT_EQ(encoder.tensors().size(), 2u);
  EXPECT_EQ(encoder.tensors()[0].storage(), x.storage());
  auto back = RoundTrip(std::vector<Tensor>{x, Tensor()});
  EXPECT_EQ(back[0].storage(), x.storage());
  EXPECT_FALSE(back[1].defined());
}

TEST(Codec, EveryCutIsNoticed) {
  Encoder encoder;
  encoder.Put(Spec{3, "name", {1, 2}, false});
  for (size_t size = 0; size < encoder.bytes().size(); ++size) {
    Decoder decoder(encoder.bytes().substr(0, size));
    decoder.Get<Spec>();
    EXPECT_THAT(decoder.Finish(), Fails(StatusCode::kInvalidArgument, ""));
  }
  Decoder longer(encoder.bytes() + "x");
  longer.Get<Spec>();
  EXPECT_THAT(longer.Finish(),
              Fails(StatusCode::kInvalidArgument, "1 bytes and 0 tensors"));
}

TEST(Codec, AClaimedLengthAllocatesNothing) {
  const std::string huge(
      "\xff\xff\xff\xff"
      "abc",
      7);
  Decoder text(huge);
  EXPECT_EQ(text.Get<std::string>(), "");
  EXPECT_THAT(text.Finish(),
              Fails(StatusCode::kInvalidArgument, "claims 4294967295 items"));
  Decoder numbers(huge);
  EXPECT_TRUE(numbers.Get<std::vector<double>>().empty());
  Decoder specs(huge);
  EXPECT_TRUE(specs.Get<std::vector<Spec>>().empty());
  Decoder map(huge);
  EXPECT_TRUE((map.Get<std::map<int, int>>().empty()));
}

TEST(Codec, WrongContentsAreRefused) {
  Decoder flag(std::string("\x02", 1));
  flag.Get<bool>();
  EXPECT_FALSE(flag.Finish().ok());
  Decoder tensor(std::string("\x01", 1));
  EXPECT_FALSE(tensor.Get<Tensor>().defined());
  EXPECT_THAT(tensor.Finish(), Fails(StatusCode::kInvalidArgument, "tensor 0"));
  Decoder fields(std::string("\x05", 1));
  fields.Get<Spec>();
  EXPECT_FALSE(fields.Finish().ok());
  Decoder extra("", {Tensor::Ones({1})});
  EXPECT_FALSE(extra.Finish().ok());
}

TEST(Codec, DeepNestingIsRefused) {
  Tree tree;
  for (int i = 0; i < 100; ++i) {
    Tree outer;
    outer.children.push_back(std::move(tree));
    tree = std::move(outer);
  }
  Encoder encoder;
  encoder.Put(tree);
  Decoder decoder(encoder.bytes());
  decoder.Get<Tree>();
  EXPECT_THAT(decoder.Finish(),
              Fails(StatusCode::kInvalidArgument, "nested too deeply"));
}

// Random bytes, or those of a value with some of them changed.
class Scrambler {
 public:
  std::string Random() {
    std::string bytes(random_() % 64, '\0');
    const unsigned most = random_() % 2 == 0 ? 256 : 4;
    for (char& c : bytes) c = static_cast<char>(random_() % most);
    return bytes;
  }
  template <typename T>
  std::string Like(const T& value) {
    Encoder encoder;
    encoder.Put(value);
    std::string bytes = encoder.bytes();
    for (size_t changes = random_() % 4; changes > 0; --changes) {
      bytes[random_() % bytes.size()] = static_cast<char>(random_() % 256);
    }
    return bytes;
  }

 private:
  std::mt19937 random_{7};
};

// Whether they are taken for a T, which then encodes to them again.
template <typename T>
bool IsTaken(const std::string& bytes) {
  Decoder decoder(bytes);
  const T value = decoder.Get<T>();
  if (const absl::Status status = decoder.Finish(); !status.ok()) {
    EXPECT_THAT(status, Fails(StatusCode::kInvalidArgument, ""));
    return false;
  }
  Encoder encoder;
  encoder.Put(value);
  EXPECT_EQ(encoder.bytes(), bytes);
  return true;
}

template <typename T>
void ExpectRefusedOrTakenAsTheyAre(const T& value) {
  constexpr int kInputs = 2500;
  Scrambler scrambler;
  int taken = 0;
  for (int i = 0; i < kInputs; ++i) {
    taken += IsTaken<T>(scrambler.Random()) ? 1 : 0;
    taken += IsTaken<T>(scrambler.Like(value)) ? 1 : 0;
    if (::testing::Test::HasFailure()) return;
  }
  // A quarter of the like ones is unchanged.
  EXPECT_GE(taken, kInputs / 8) << rpc::internal::TypeName<T>();
  EXPECT_LE(taken, kInputs * 3 / 2) << rpc::internal::TypeName<T>();
}

TEST(Codec, RandomBytesAreRefusedOrTakenAsTheyAre) {
  const rpc::WorkerInfo bob{"bob", rpc::Rank{1}, 2, "127.0.0.1:2"};
  const rpc::internal::Transfer transfer{{2, 3}, {2, 4}, 5, bob};
  rpc::internal::RequestFrame request;
  request.call = 1;
  request.transfers = {transfer};
  request.arguments = "arguments";
  ExpectRefusedOrTakenAsTheyAre(request);
  rpc::internal::ControlFrame control;
  control.items = {{}, {rpc::internal::ControlKind::kAdd, {2, 9}, {2, 10}}};
  ExpectRefusedOrTakenAsTheyAre(control);
  ExpectRefusedOrTakenAsTheyAre(Spec{3, "x", {0.5, 2}, true});
  ExpectRefusedOrTakenAsTheyAre(
      std::vector<Tree>{{1, {{2, {}}, {3, {{4, {}}}}}}, {5, {}}});
  ExpectRefusedOrTakenAsTheyAre(Shape({2, 0, 3}));
}

// The order of its payloads and a text of OK get lost on the way.
TEST(Codec, RandomBytesOfAStatusAreRefusedOrMeanOneStatus) {
  Scrambler scrambler;
  absl::Status gone = absl::NotFoundError("gone");
  gone.SetPayload("call", absl::Cord("worker"));
  int taken = 0;
  for (int i = 0; i < 5000; ++i) {
    Decoder decoder(i % 2 == 0 ? scrambler.Random() : scrambler.Like(gone));
    const auto status = decoder.Get<absl::Status>();
    if (!decoder.Finish().ok()) continue;
    ++taken;
    ASSERT_EQ(RoundTrip(status), status);
  }
  EXPECT_GE(taken, 5000 / 16);
}

}  // namespace
}  // namespace baton::testing
