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

TEST(Codec, RandomBytesNeverCrash) {
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(random() % 64, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % (i % 2 ? 4 : 256));
    Decoder a(bytes);
    a.Get<std::tuple<Spec, std::vector<Tree>, absl::Status, Shape>>();
    (void)a.Finish();
    (void)rpc::internal::DecodeFrame<rpc::internal::RequestFrame>(bytes);
    (void)rpc::internal::DecodeFrame<rpc::internal::ResponseFrame>(bytes);
    (void)rpc::internal::DecodeFrame<rpc::internal::ControlFrame>(bytes);
  }
}

}  // namespace
}  // namespace baton::testing
