// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Connections of those who are not let in: how many there are, how long, and
// what members see of them.

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <span>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/parallel.h"
#include "rpc/channels/accepting.h"
#include "rpc/channels/segment.h"
#include "rpc/rendezvous.h"
#include "rpc/transports/address.h"
#include "rpc/wire.pb.h"
#include "tests/rpc/certificates.h"
#include "tests/rpc/grpc_worker.h"
#include "tests/rpc/raw_client.h"
#include "tests/support/child_process.h"
#include "tests/support/process_usage.h"
#include "tests/support/program_path.h"
#include "tests/support/status_matchers.h"
#include "tests/support/within.h"

namespace baton::rpc {
namespace {

using baton::testing::Fails;
using baton::testing::IsOk;
using baton::testing::UsageOf;
using baton::testing::Within;
using std::chrono::milliseconds;
using std::chrono::seconds;

// For which who says nothing may stay; others may for longer.
constexpr seconds kLeastTime{10};
// What both sides send first on HTTP/2; then nothing, and no stream.
constexpr char kPreface[] =
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";

Fd ConnectTo(const std::string& address) {
  const auto parsed = ParseHostPort(TcpOf(address));
  EXPECT_THAT(parsed, IsOk());
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(parsed->port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)),
            0)
      << strerror(errno);
  return socket;
}

bool HasEnded(const Fd& socket, milliseconds within = milliseconds(0)) {
  char bytes[4096];
  pollfd one{.fd = socket.get(), .events = POLLIN, .revents = 0};
  const auto deadline = std::chrono::steady_clock::now() + within;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (poll(&one, 1, static_cast<int>(std::max<int64_t>(left.count(), 0))) !=
        1) {
      return false;
    }
    if (recv(socket.get(), bytes, sizeof(bytes), MSG_DONTWAIT) <= 0)
      return true;
  }
}

// Which have, in the same order. Asks the last one first: where that has ended
// while others still end, so have those before it.
std::vector<bool> EndedOf(std::span<const Fd> sockets) {
  std::vector<bool> ended(sockets.size());
  for (size_t i = sockets.size(); i-- > 0;) ended[i] = HasEnded(sockets[i]);
  return ended;
}

ptrdiff_t Count(const std::vector<bool>& ended) {
  return std::count(ended.begin(), ended.end(), true);
}

// Nearly all that have ended came before those that have not.
void ExpectOldest(const std::vector<bool>& ended) {
  const ptrdiff_t count = Count(ended);
  EXPECT_GE(std::count(ended.begin(), ended.begin() + count, true),
            count * 9 / 10);
}

// Every second one.
std::vector<bool> Half(const std::vector<bool>& all, size_t from) {
  std::vector<bool> half;
  for (size_t i = from; i < all.size(); i += 2) half.push_back(all[i]);
  return half;
}

std::unique_ptr<TestWorker> TcpWorker(const std::string& name, int rank,
                                      GrpcOptions options = {}) {
  options.unix_socket = false;
  auto worker = NewWorker(name, rank, options);
  worker->Start();
  return worker;
}

class GrpcUnauthenticated : public ::testing::TestWithParam<size_t> {
 protected:
  using Clock = std::chrono::steady_clock;

  static void ExpectThoseThatCameFirst(const std::vector<bool>& ended,
                                       ptrdiff_t surplus,
                                       Clock::time_point begun) {
    if (Clock::now() - begun < kLeastTime) {
      EXPECT_LT(Count(ended), surplus + 1024 / 10);
      ExpectOldest(ended);
    } else {
      // A busy machine accepts so slowly that the time of some is over.
      ExpectOldest(Half(ended, 0));
      ExpectOldest(Half(ended, 1));
    }
  }
  // As many, of whom all but 1,024 are cut off; `members` is done meanwhile.
  template <typename Members>
  void Flood(const std::string& address, const Members& members) {
    const size_t count = GetParam();
    const auto before = UsageOf(getpid());
    const auto begun = Clock::now();
    std::vector<Fd> sockets;
    for (size_t i = 0; i < count; ++i) {
      sockets.push_back(ConnectTo(address));
      if (i % 2 == 0) {
        send(sockets.back().get(), kPreface, sizeof(kPreface) - 1, 0);
      }
    }
    const auto surplus = static_cast<ptrdiff_t>(count) - 1024;
    EXPECT_TRUE(Within(seconds(60),
                       [&] { return Count(EndedOf(sockets)) >= surplus; }));
    ExpectThoseThatCameFirst(EndedOf(sockets), surplus, begun);
    members();
    const auto after = UsageOf(getpid());
    EXPECT_LT(after->threads, before->threads + 20);
    // Theirs, and two for each that is still there.
    EXPECT_LT(after->descriptors,
              before->descriptors + static_cast<int>(count) + 2 * 1024 + 200);
    EXPECT_LT(after->resident_kb, before->resident_kb + 200 * 1024);
  }
};

TEST_P(GrpcUnauthenticated, OfAWorkerAreSoManyAtMost) {
  auto alice = TcpWorker("alice", 0);
  Flood(alice->info.address, [&] {
    // They may keep a machine busy for long.
    auto bob = TcpWorker("bob", 1, {.connect_timeout = kPatience});
    bob->transport->AddPeer(alice->info);
    EXPECT_THAT(bob->SendTo("alice", {"fine", {}}), IsOk());
    EXPECT_EQ(alice->mailbox.Await(1).at(0).message.header, "fine");
  });
}

TEST_P(GrpcUnauthenticated, OfARendezvousAreSoManyAtMost) {
  const auto server = RendezvousServer::Make("127.0.0.1:0");
  ASSERT_THAT(server, IsOk());
  Flood((*server)->address(), [&] {
    EXPECT_THAT(
        Join((*server)->address(),
             {.self = {"alice", Rank{0}, 7, "127.0.0.1:1"}, .world_size = 1}),
        IsOk());
  });
}

// What limits descriptors here decides how many more a machine lets be tried;
// sanitizers take a hundred times the memory and time for each.
#if defined(BATON_SANITIZED)
INSTANTIATE_TEST_SUITE_P(Of, GrpcUnauthenticated, ::testing::Values(1'200));
#else
INSTANTIATE_TEST_SUITE_P(Of, GrpcUnauthenticated,
                         ::testing::Values(1'200, 6'000));
#endif

TEST(GrpcUnauthenticated, WhoSaysNothingIsCutOffInClear) {
  auto alice = TcpWorker("alice", 0, {.hello_timeout = milliseconds(100)});
  const Fd silent = ConnectTo(alice->info.address);
  const Fd without_stream = ConnectTo(alice->info.address);
  const Fd slow = ConnectTo(alice->info.address);
  send(without_stream.get(), kPreface, sizeof(kPreface) - 1, 0);
  const auto begun = std::chrono::steady_clock::now();
  // Bytes now and then are no reason to stay.
  for (size_t at = 0; at < sizeof(kPreface) - 1 && !HasEnded(slow); ++at) {
    send(slow.get(), kPreface + at, 1, MSG_NOSIGNAL);
    EXPECT_FALSE(HasEnded(slow, milliseconds(5)) &&
                 std::chrono::steady_clock::now() - begun < milliseconds(290));
  }
  EXPECT_TRUE(HasEnded(slow, seconds(5)));
  EXPECT_TRUE(HasEnded(silent, seconds(5)));
  EXPECT_TRUE(HasEnded(without_stream, seconds(5)));
}

TEST(GrpcUnauthenticated, AHelloThatIsRefusedIsNoReasonToStay) {
  auto alice = TcpWorker("alice", 0, {.hello_timeout = milliseconds(100)});
  RawClient client(TcpOf(alice->info.address));
  client.WriteBytes("no hello");
  EXPECT_EQ(client.ReadAnswer()->verdict(), wire::VERDICT_REFUSED);
  const auto before = UsageOf(getpid())->descriptors;
  EXPECT_TRUE(Within(seconds(10),
                     [&] { return UsageOf(getpid())->descriptors < before; }));
}

// However the two name where it comes from.
TEST(GrpcUnauthenticated, AMemberStays) {
  const TestAuthority authority;
  for (const bool tls : {false, true}) {
    for (const char* listen : {"127.0.0.1:0", "[::1]:0", "localhost:0"}) {
      if (!CheckListen(listen).ok()) continue;  // a machine without IPv6
      const auto options = [&](const std::string& name) -> GrpcOptions {
        return {.listen = listen,
                .hello_timeout = milliseconds(200),
                .security = tls ? authority.For(name) : Security()};
      };
      auto alice = TcpWorker("alice", 0, options("alice"));
      auto bob = TcpWorker("bob", 1, options("bob"));
      bob->transport->AddPeer(alice->info);
      EXPECT_THAT(bob->SendTo("alice", {"fine", {Tensor::Ones({50'000})}}),
                  IsOk());
      EXPECT_TRUE(alice->mailbox.NobodyLostFor(milliseconds(800))) << listen;
      EXPECT_EQ(bob->mailbox.lost(), 0u);
    }
  }
}

TEST(GrpcUnauthenticated, OpensOneStreamAConnection) {
  auto alice = TcpWorker("alice", 0);
  const auto channel = grpc::CreateChannel(TcpOf(alice->info.address),
                                           grpc::InsecureChannelCredentials());
  RawClient one(channel), other(channel);
  const auto ends = [](RawClient& client) {
    return std::async(std::launch::async, [&client] {
      grpc::ByteBuffer frames;
      return !client.Read(&frames);
    });
  };
  std::future<bool> one_ended = ends(one), other_ended = ends(other);
  const auto is_over = [](const std::future<bool>& ended) {
    return ended.wait_for(seconds(0)) == std::future_status::ready;
  };
  // Either of them, and before the time for a hello is over.
  EXPECT_TRUE(Within(
      seconds(5), [&] { return is_over(one_ended) || is_over(other_ended); }));
  EXPECT_FALSE(is_over(one_ended) && is_over(other_ended));
  alice.reset();  // which ends the other
  EXPECT_TRUE(one_ended.get() && other_ended.get());
}

// Takes all descriptors but so many, those too that connections which are on
// their way out give back meanwhile.
class Hoard {
 public:
  explicit Hoard(size_t left) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    while (TakeBelow(limit.rlim_cur - left) > 0)
      std::this_thread::sleep_for(milliseconds(100));
  }

 private:
  // Returns how many.
  size_t TakeBelow(size_t end) {
    const size_t before = hoarded_.size();
    do {
      hoarded_.emplace_back(dup(0));
    } while (static_cast<size_t>(hoarded_.back().get()) < end);
    hoarded_.pop_back();
    return hoarded_.size() - before;
  }

  std::vector<Fd> hoarded_;
};

class FewDescriptors : public ::testing::Test {
 protected:
  void SetUp() override {
    RaiseDescriptorLimit();  // which is done once
    (void)ComputeThreads();  // LLVM's OpenMP opens a file as it starts
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit_), 0);
    const rlimit low = {1024, limit_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  }
  void TearDown() override { setrlimit(RLIMIT_NOFILE, &limit_); }
  rlimit limit_{};
};

// Of 1,024 twice 128 are kept: with fewer left a worker is told, with half of
// them nobody is.
TEST_F(FewDescriptors, KeepNewcomersOutAndMembersGoOn) {
  auto alice = TcpWorker("alice", 0);
  const GrpcOptions soon{.connect_timeout = milliseconds(500)};
  auto bob = TcpWorker("bob", 1), carol = TcpWorker("carol", 2, soon);
  for (auto* worker : {bob.get(), carol.get()})
    worker->transport->AddPeer(alice->info);
  ASSERT_THAT(bob->SendTo("alice", {"", {Tensor::Ones({50'000})}}), IsOk());
  {
    const Hoard hoard(200);
    EXPECT_THAT(carol->SendTo("alice", {"", {}}),
                Fails(absl::StatusCode::kUnavailable,
                      "of 1024 descriptors are in use, and the others are kept "
                      "for what is connected; raise the hard limit"));
    EXPECT_THAT(bob->SendTo("alice", {"", {Tensor::Ones({50'000})}}), IsOk());
  }
  {
    const Hoard hoard(60);
    const Fd silent = ConnectTo(alice->info.address);
    EXPECT_TRUE(HasEnded(silent, seconds(10)));
    EXPECT_THAT(bob->SendTo("alice", {"", {Tensor::Ones({50'000})}}), IsOk());
  }
  {
    // gRPC alone would never accept anybody again after this.
    const Hoard hoard(1);
    const Fd silent = ConnectTo(alice->info.address);
    EXPECT_THAT(bob->SendTo("alice", {"", {Tensor::Ones({50'000})}}), IsOk());
  }
  EXPECT_THAT(carol->SendTo("alice", {"", {}}), IsOk());
}

TEST(Descriptors, OfAWorkerAreAsManyAsItMayHave) {
  ChildProcess worker({"/bin/sh", "-c", "ulimit -Sn 200; exec \"$0\" bob",
                       testing::ProgramPath("echo_peer")});
  ASSERT_NE(worker.ReadLine(), "");
  std::ifstream limits(absl::StrCat("/proc/", worker.pid(), "/limits"));
  std::string line, soft, hard, word;
  while (std::getline(limits, line)) {
    std::istringstream words(line);
    if (words >> word >> word >> word && word == "files") words >> soft >> hard;
  }
  EXPECT_EQ(soft, hard);
  EXPECT_NE(soft, "200");
}

}  // namespace
}  // namespace baton::rpc
