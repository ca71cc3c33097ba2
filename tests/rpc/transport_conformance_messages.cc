// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/rpc/transport_conformance.h"

// Messages and tensors of workers that stay.
namespace baton::rpc {

TEST_P(TransportConformance, SmallMessagesArriveInOrder) {
  MakePair();
  SentLog log;
  constexpr int kCount = 3000;
  for (int i = 0; i < kCount; ++i) {
    alice_->transport->Send("bob", {absl::StrCat("m", i), {}}, log.Next());
  }
  const auto letters = bob_->mailbox.Await(kCount);
  ASSERT_EQ(letters.size(), kCount);
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(letters[i].message.header, absl::StrCat("m", i));
    EXPECT_EQ(letters[i].from, alice_->info);
  }
  for (const absl::Status& status : log.Await(kCount)) {
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST_P(TransportConformance, ChannelsTellWhatTravelled) {
  MakePair();
  EXPECT_TRUE(alice_->transport->Channels().empty());
  const Tensor tensor = Pattern(1 << 20);
  for (const std::string header : {"abc", "defgh"}) {
    ASSERT_TRUE(alice_->SendTo("bob", {header, {tensor}}).ok());
  }
  bob_->mailbox.Await(2);
  const uint64_t bytes = 2 * (1 << 20) + 8;
  const auto sent = alice_->transport->Channels();
  const auto received = bob_->transport->Channels();
  ASSERT_EQ(sent.size(), 1);
  ASSERT_EQ(received.size(), 1);
  EXPECT_EQ(sent[0].peer, "bob");
  EXPECT_EQ(received[0].peer, "alice");
  EXPECT_EQ(sent[0].name, received[0].name);
  EXPECT_FALSE(sent[0].name.empty());
  EXPECT_TRUE(sent[0].up && received[0].up);
  EXPECT_EQ(sent[0].messages_sent, 2);
  EXPECT_EQ(sent[0].bytes_sent, bytes);
  EXPECT_EQ(sent[0].messages_received, 0);
  EXPECT_EQ(received[0].messages_received, 2);
  EXPECT_EQ(received[0].bytes_received, bytes);
}

TEST_P(TransportConformance, TensorsOfEverySizeArriveWhole) {
  MakePair();
  const std::vector<int64_t> sizes = {
      0, 1, 1023, 16384, 16385, 65536, 1 << 20, (1 << 20) + 1, 64 << 20};
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Tensor tensor = Pattern(sizes[i], static_cast<int>(i));
    ASSERT_TRUE(alice_->SendTo("bob", {"t", {tensor}}).ok());
  }
  // Small and large ones travel apart, hence by size.
  const auto letters = bob_->mailbox.Await(sizes.size());
  ASSERT_EQ(letters.size(), sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Tensor expected = Pattern(sizes[i], static_cast<int>(i));
    int found = 0;
    for (const auto& letter : letters) {
      found += SameBytes(letter.message.tensors.at(0), expected);
    }
    EXPECT_EQ(found, 1) << sizes[i] << " bytes";
  }
}

TEST_P(TransportConformance, EveryDtypeAndLayoutKeepsItsElements) {
  MakePair();
  std::vector<Tensor> tensors = {
      Tensor::From<float>({1.5f, -2, 3}),
      Tensor::From<double>({1e300, -0.0}),
      Tensor::From<Half>({Half(1.5f), Half(-7)}),
      Tensor::From<BFloat16>({BFloat16(2), BFloat16(-0.5f)}),
      Tensor::From<int32_t>({1, -2}),
      Tensor::From<int64_t>({1ll << 40, -5}),
      Tensor::From<uint8_t>({0, 255}),
      Tensor::Ones({3}, {.dtype = DType::kBool}),
      Tensor::Scalar(4.25),
      Tensor::Empty({0, 3}),
      Tensor::Empty({5, 0, 2})};
  const Tensor base = Tensor::Arange(24).Reshape({2, 3, 4});
  tensors.push_back(base.Transpose(0, 2));
  tensors.push_back(base.Slice(2, 1, 4, 2));
  tensors.push_back(base.Select(1, 2));
  tensors.push_back(Tensor::Scalar(3).Expand({4, 5}));
  const Tensor large = Pattern(300 * 400).Reshape({300, 400});
  tensors.push_back(large.Transpose(0, 1));
  ASSERT_TRUE(alice_->SendTo("bob", {"all", tensors}).ok());
  const auto letters = bob_->mailbox.Await(1);
  ASSERT_EQ(letters.size(), 1u);
  ASSERT_EQ(letters[0].message.tensors.size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_TRUE(SameBytes(letters[0].message.tensors[i], tensors[i]))
        << tensors[i].ToString();
  }
}

TEST_P(TransportConformance, ChannelsLastStaysChannelsLast) {
  MakePair();
  const Tensor plain = Pattern(2 * 3 * 4 * 5).Reshape({2, 3, 4, 5});
  const Tensor image = plain.Contiguous(MemoryFormat::kChannelsLast);
  ASSERT_TRUE(alice_->SendTo("bob", {"", {image}}).ok());
  const auto letters = bob_->mailbox.Await(1);
  ASSERT_EQ(letters.size(), 1u);
  const Tensor& got = letters[0].message.tensors.at(0);
  EXPECT_TRUE(got.IsContiguous(MemoryFormat::kChannelsLast));
  EXPECT_TRUE(SameBytes(got, plain));
}

TEST_P(TransportConformance, HeadersOfMegabytesArriveWhole) {
  MakePair();
  std::string header(5 << 20, 'x');
  header[4 << 20] = 'y';
  ASSERT_TRUE(alice_->SendTo("bob", {header, {Pattern(100000)}}).ok());
  ASSERT_TRUE(alice_->SendTo("bob", {"", {}}).ok());
  const auto letters = bob_->mailbox.Await(2);
  ASSERT_EQ(letters.size(), 2u);
  const bool first = !letters[0].message.header.empty();
  EXPECT_TRUE(letters[first ? 0 : 1].message.header == header);
  EXPECT_EQ(letters[first ? 1 : 0].message.header, "");
}

TEST_P(TransportConformance, HeadersOfMegabytesTravelByTheChannel) {
  MakePair();
  AwaitChannel();
  const auto travelled = [&] {
    for (const TensorChannelInfo& info : alice_->transport->TensorChannels()) {
      if (info.name == GetParam().channel) return info.tensors_sent > 0;
    }
    return true;
  };
  size_t count = 0;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  do {  // until there is room
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    const std::string header((2 << 20) + count++, 'x');
    ASSERT_TRUE(alice_->SendTo("bob", {header, {}}).ok());
  } while (!travelled());
  std::set<size_t> sizes;
  for (const auto& letter :
       bob_->mailbox.Await(count + (GetParam().channel.empty() ? 0 : 1))) {
    if (letter.message.header == "hello") continue;
    EXPECT_TRUE(letter.message.tensors.empty());
    const std::string& header = letter.message.header;
    EXPECT_EQ(header.find_first_not_of('x'), std::string::npos);
    sizes.insert(header.size());
  }
  EXPECT_EQ(sizes.size(), count);
  EXPECT_EQ(*sizes.begin(), size_t{2} << 20);
}

TEST_P(TransportConformance, TensorsTravelByTheChannelAndMayBeWrittenThere) {
  MakePair();
  AwaitChannel();
  constexpr int kCount = 100;
  std::vector<Tensor> sent;
  for (int i = 0; i < kCount; ++i) {
    sent.push_back(Pattern((20 << 10) + 4000 * i, i));
  }
  SentLog answers;
  bob_->mailbox.OnEach([&](const Mailbox::Letter& letter) {
    for (const Tensor& tensor : letter.message.tensors) {
      const Tensor expected = tensor.Clone();
      tensor.Fill(200);
      bob_->transport->Send("alice", {"", {expected, tensor}}, answers.Next());
    }
  });
  for (const Tensor& tensor : sent) {
    ASSERT_TRUE(alice_->SendTo("bob", {"", {tensor}}).ok());
  }
  const auto letters = alice_->mailbox.Await(kCount);
  for (const auto& letter : letters) {
    const Tensor& got = letter.message.tensors.at(0);
    const auto i = static_cast<size_t>((got.numel() - (20 << 10)) / 4000);
    EXPECT_TRUE(SameBytes(got, sent.at(i)));
    EXPECT_TRUE(
        SameBytes(letter.message.tensors.at(1),
                  Tensor::Full(got.shape(), 200, {.dtype = DType::kU8})));
  }
  for (const Tensor& tensor : sent) {
    EXPECT_TRUE(SameBytes(
        tensor, Pattern(tensor.numel(), static_cast<int>(&tensor - &sent[0]))));
  }
  bool found = GetParam().channel.empty();
  for (const TensorChannelInfo& info : alice_->transport->TensorChannels()) {
    if (info.name != GetParam().channel) continue;
    found = true;
    EXPECT_GT(info.tensors_sent, 0u) << info.why_not;
    EXPECT_GT(info.tensors_received, 0u) << info.why_not;
  }
  EXPECT_TRUE(found);
}

TEST_P(TransportConformance, TensorsMadeForThePeerArriveMovedOrNot) {
  MakePair();
  AwaitChannel();
  constexpr int64_t kSizes[] = {100, 20 << 10, 3 << 20};
  for (const int64_t bytes : kSizes) {
    const TensorOptions options{.dtype = DType::kU8};
    Tensor tensor = alice_->transport->EmptyFor("bob", {bytes}, options);
    if (!tensor.defined()) tensor = Tensor::Empty({bytes}, options);
    tensor.CopyFrom(Pattern(bytes, 1));
    ASSERT_TRUE(alice_->SendTo("bob", {"kept", {tensor}}).ok());
    tensor.CopyFrom(Pattern(bytes, 2));
    Message moved{"moved", {}};
    moved.tensors.push_back(std::move(tensor));
    ASSERT_TRUE(alice_->SendTo("bob", std::move(moved)).ok());
  }
  EXPECT_FALSE(alice_->transport->EmptyFor("nobody", {1 << 20}, {}).defined());
  const auto letters = bob_->mailbox.Await(
      2 * std::size(kSizes) + (GetParam().channel.empty() ? 0 : 1));
  std::multiset<int64_t> sizes;
  for (const auto& letter : letters) {
    if (letter.message.header == "hello") continue;
    const Tensor& got = letter.message.tensors.at(0);
    sizes.insert(got.numel());
    EXPECT_TRUE(SameBytes(
        got, Pattern(got.numel(), letter.message.header == "kept" ? 1 : 2)));
    got.Fill(7);
  }
  for (const int64_t bytes : kSizes) EXPECT_EQ(sizes.count(bytes), 2u);
  for (const TensorChannelInfo& info : alice_->transport->TensorChannels()) {
    if (info.name != "shared memory") continue;
    EXPECT_GT(info.sent_in_place, 0u) << info.why_not;
    EXPECT_LT(info.sent_in_place, info.tensors_sent);
    EXPECT_EQ(info.made_bytes, 0u);
  }
}

TEST_P(TransportConformance, BothCanSpeakAtOnceFromTheFirstMessage) {
  MakePair();
  constexpr int kCount = 200;
  SentLog log;
  const auto speak = [&log](TestWorker& from, const std::string& to) {
    for (int i = 0; i < kCount; ++i) {
      Message message{absl::StrCat(i), {}};
      if (i % 20 == 0) message.tensors.push_back(Pattern(200000, i));
      from.transport->Send(to, std::move(message), log.Next());
    }
  };
  std::thread other([&] { speak(*bob_, "alice"); });
  speak(*alice_, "bob");
  other.join();
  for (const absl::Status& status : log.Await(2 * kCount)) {
    EXPECT_TRUE(status.ok()) << status;
  }
  for (TestWorker* worker : {alice_.get(), bob_.get()}) {
    EXPECT_EQ(worker->mailbox.Await(kCount).size(), kCount);
    EXPECT_EQ(worker->mailbox.lost(), 0u);
  }
}

TEST_P(TransportConformance, ManySmallRequestsInFlightAreAllAnswered) {
  MakePair();
  constexpr int kCount = 5000;
  SentLog answers;
  bob_->mailbox.OnEach([&](const Mailbox::Letter& letter) {
    bob_->transport->Send("alice", letter.message, answers.Next());
  });
  SentLog log;
  for (int i = 0; i < kCount; ++i) {
    alice_->transport->Send("bob", {absl::StrCat(i), {Tensor::Scalar(i)}},
                            log.Next());
  }
  const auto letters = alice_->mailbox.Await(kCount);
  ASSERT_EQ(letters.size(), kCount);
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(letters[i].message.header, absl::StrCat(i));
    EXPECT_EQ(letters[i].message.tensors.at(0).Item(), i);
  }
}

TEST_P(TransportConformance, LargeTensorsDoNotHoldUpSmallMessages) {
  MakePair();
  ASSERT_TRUE(alice_->SendTo("bob", {"hello", {Pattern(100000)}}).ok());
  bob_->mailbox.Await(1);
  SentLog log;
  constexpr int kLarge = 2;
  const Tensor large = Pattern(64 << 20);
  for (int i = 0; i < kLarge; ++i) {
    alice_->transport->Send("bob", {"large", {large}}, log.Next());
  }
  alice_->transport->Send("bob", {"small", {}}, log.Next());
  const auto letters = bob_->mailbox.Await(kLarge + 2);
  ASSERT_EQ(letters.size(), kLarge + 2u);
  if (GetParam().in_chunks) {
    EXPECT_EQ(letters.back().message.header, "large");
  }
}

TEST_P(TransportConformance, ErrorsOfSendNameTheirCause) {
  MakePair();
  EXPECT_EQ(alice_->SendTo("carol", {}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(alice_->SendTo("alice", {}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(alice_->SendTo("bob", {"", {Tensor()}}).code(),
            absl::StatusCode::kInvalidArgument);
  auto fresh = NewWorker("carol", 2);
  EXPECT_EQ(fresh->SendTo("bob", {}).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(alice_->transport->Start(alice_->info, &alice_->mailbox).ok());
  alice_->transport->RemovePeer("bob");
  EXPECT_EQ(alice_->SendTo("bob", {}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(bob_->mailbox.count(), 0u);
}

TEST_P(TransportConformance, APeerThatWasNotAnnouncedCanBeAnswered) {
  alice_ = NewWorker("alice", 0);
  bob_ = NewWorker("bob", 1);
  alice_->transport->AddPeer(bob_->info);
  alice_->Start();
  bob_->Start();
  ASSERT_TRUE(alice_->SendTo("bob", {"hi", {}}).ok());
  bob_->mailbox.Await(1);
  EXPECT_TRUE(bob_->SendTo("alice", {"hi yourself", {}}).ok());
  EXPECT_EQ(alice_->mailbox.Await(1).at(0).from, bob_->info);
}

TEST_P(TransportConformance, MessagesWaitForAPeerThatHasNotStarted) {
  alice_ = NewWorker("alice", 0);
  bob_ = NewWorker("bob", 1);
  WorkerInfo bob = bob_->info;
  bob.incarnation = 0;  // nobody has seen it yet
  alice_->transport->AddPeer(bob);
  alice_->Start();
  SentLog log;
  alice_->transport->Send("bob", {"early", {}}, log.Next());
  bob_->Start();
  EXPECT_EQ(bob_->mailbox.Await(1).at(0).message.header, "early");
  EXPECT_TRUE(log.Await(1).at(0).ok());
}

TEST_P(TransportConformance, ThreeWorkersReachEachOther) {
  std::vector<std::unique_ptr<TestWorker>> workers;
  for (int i = 0; i < 3; ++i) {
    workers.push_back(NewWorker(absl::StrCat("w", i), i));
  }
  for (auto& a : workers) {
    a->Start();
    for (auto& b : workers) {
      if (a != b) a->transport->AddPeer(b->info);
    }
  }
  SentLog log;
  for (auto& a : workers) {
    for (auto& b : workers) {
      if (a == b) continue;
      a->transport->Send(b->info.name, {a->info.name, {Pattern(100000)}},
                         log.Next());
    }
  }
  for (auto& worker : workers) EXPECT_EQ(worker->mailbox.Await(2).size(), 2u);
}

}  // namespace baton::rpc
