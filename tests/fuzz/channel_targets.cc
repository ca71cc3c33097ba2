// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

#include "core/future.h"
#include "core/status.h"
#include "rpc/channels/shared_memory.h"
#include "rpc/transports/outgoing.h"
#include "rpc/transports/receiver.h"
#include "rpc/transports/tensor_channels.h"
#include "rpc/wire.pb.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

// What a worker reads of a peer with whom it shares memory.
namespace baton::fuzz {
namespace {

using rpc::Fd;
using rpc::TensorChannels;

constexpr size_t kBudget = size_t{256} << 10;
constexpr uint64_t kRoom = uint64_t{1} << 30;  // more than is made
constexpr size_t kMaxMessageBytes = size_t{1} << 20;
constexpr size_t kMostKept = 16;

const std::shared_ptr<ThreadPool>& Worker() {
  static const auto worker = std::make_shared<ThreadPool>(1, "fuzz-shm");
  return worker;
}

// Tasks that were posted, and those that these post, have run.
void AwaitWorker() {
  for (int depth = 0; depth < 4; ++depth) {
    const Promise<void> done;
    Worker()->Post([done] { done.Set(absl::OkStatus()); });
    BATON_CHECK(done.future().Await(kNoLimit).ok());
  }
}

// Ends that have a socket already.
class PairKind final : public rpc::ChannelKind {
 public:
  explicit PairKind(Fd socket) : socket_(std::move(socket)) {}

  uint32_t id() const override { return 1; }
  std::string name() const override { return "shared memory"; }
  absl::StatusOr<std::string> Offer() override { return std::string(); }
  absl::StatusOr<std::shared_ptr<rpc::Channel>> Open(
      const Ends&, std::shared_ptr<rpc::ChannelPort> port) override {
    return std::make_shared<rpc::SharedMemoryEnd>(
        [fd = socket_.get()] { return rpc::FdConnection(Fd(dup(fd))); },
        budget_, Worker(), *heartbeat_, *wakeup_, std::move(port));
  }
  const Fd& socket() const { return socket_; }

 private:
  static std::shared_ptr<rpc::SharedBudget> PlentyOfRoom() {
    return std::make_shared<rpc::SharedBudget>(
        [] { return rpc::MemoryRoom{.limit = kRoom, .free = kRoom}; });
  }

  const Fd socket_;
  const rpc::SharedMemoryEnd::Budget budget_ = {PlentyOfRoom(), PlentyOfRoom(),
                                                kBudget, std::chrono::hours(1)};
  const absl::StatusOr<std::shared_ptr<rpc::SharedHeartbeat>> heartbeat_ =
      rpc::SharedHeartbeat::Make();
  const absl::StatusOr<std::shared_ptr<rpc::FutexEvent>> wakeup_ =
      rpc::FutexEvent::Make();
};

// One worker's end of the connection, and what has come there.
struct Side {
  Side(const char* self, const char* peer, bool dialed, Fd socket)
      : kind(std::make_shared<PairKind>(std::move(socket))) {
    static Timer timer("fuzz");
    rpc::ChannelOffers offers;
    offers.Add()->set_channel(kind->id());
    channels = TensorChannels::Make({kind}, offers, offers,
                                    {.self = self,
                                     .peer = peer,
                                     .dialed = dialed,
                                     .timer = &timer,
                                     .wake = [] {}});
  }

  // False where a link would break.
  bool Read(const grpc::ByteBuffer& frames) {
    rpc::Receiver::Batch batch;
    const absl::Status status = receiver.Consume(frames, channels.get(), batch);
    size_t bytes = 0;
    for (rpc::Message& message : batch.messages) {
      bytes += rpc::BytesOf(message);
      // They are the receiver's, and may be written.
      for (const Tensor& tensor : message.tensors) {
        std::memset(tensor.raw_data(), 1, tensor.nbytes());
      }
      if (kept.size() < kMostKept) kept.push_back(std::move(message));
    }
    BATON_CHECK(!status.ok() || bytes == batch.bytes);
    return status.ok();
  }

  const std::shared_ptr<PairKind> kind;
  std::shared_ptr<TensorChannels> channels;
  rpc::Receiver receiver{kMaxMessageBytes};
  std::vector<rpc::Message> kept;
};

// Alice keeps to the rules of two honest workers; bob may break them.
struct Pair {
  static Pair Make() {
    int fds[2];
    BATON_CHECK(socketpair(AF_UNIX,
                           SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                           fds) == 0);
    return Pair{{"alice", "bob", true, Fd(fds[0])},
                {"bob", "alice", false, Fd(fds[1])}};
  }

  // What `from` has to say reaches `to`.
  static bool Tell(Side& from, Side& to) {
    const std::string meta = from.channels->TakeFrame();
    const bool fine = meta.empty() || to.channels->OnFrame(meta).ok();
    AwaitWorker();
    return fine;
  }

  // A tensor of so many kB, by the channel if that has room.
  static bool Send(Side& from, Side& to, int64_t kilobytes) {
    rpc::Transport::Sent sent = nullptr;
    const auto outgoing = rpc::Outgoing::Make(
        {"header", {Tensor::Zeros({kilobytes << 8})}}, kMaxMessageBytes, sent,
        Worker(), true, from.channels);
    BATON_CHECK(outgoing.ok());
    for (bool done = false; !done;) {
      std::vector<grpc::Slice> slices;
      size_t budget = rpc::kChunkBytes;
      done = rpc::Outgoing::Take(*outgoing, budget, slices);
      if (!to.Read(grpc::ByteBuffer(slices.data(), slices.size()))) {
        return false;
      }
    }
    (*outgoing)->Written();
    return true;
  }

  // A descriptor that is no segment, or another one than is expected.
  void PassStray(int kind) {
    Fd stray;
    if (kind == 0) stray = Fd(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (kind == 1) {
      stray = Fd(memfd_create("stray", MFD_CLOEXEC | MFD_ALLOW_SEALING));
      BATON_CHECK(ftruncate(stray.get(), 64 << 10) == 0);
    }
    if (kind == 2) {
      auto segment = rpc::Segment::Create(64 << 10);
      BATON_CHECK(segment.ok());
      stray = Fd(dup(segment->fd().get()));
    }
    if (!stray.valid()) return;
    // A full socket refuses it.
    rpc::FdConnection(Fd(dup(bob.kind->socket().get())))
        .Send(stray)
        .IgnoreError();
  }

  Side alice, bob;
};

void Drop(Side& side, size_t which) {
  if (side.kept.empty()) return;
  side.kept.erase(side.kept.begin() +
                  static_cast<std::ptrdiff_t>(which % side.kept.size()));
}

// False where alice breaks the connection.
bool Step(Pair& pair, Input& input) {
  switch (input.Byte() % 9) {
    case 0:
      return Pair::Tell(pair.bob, pair.alice);
    case 1:
      Pair::Tell(pair.alice, pair.bob);
      return true;
    case 2: {
      const bool fine = pair.alice.channels->OnFrame(input.Chunk()).ok();
      AwaitWorker();
      return fine;
    }
    case 3:
      return Pair::Send(pair.bob, pair.alice, input.Byte());
    case 4:
      Pair::Send(pair.alice, pair.bob, input.Byte());
      AwaitWorker();
      return true;
    case 5: {
      grpc::Slice forged(input.Chunk());
      return pair.alice.Read(grpc::ByteBuffer(&forged, 1));
    }
    case 6:
      Drop(pair.alice, input.Byte());
      return true;
    case 7:
      Drop(pair.bob, input.Byte());
      return true;
    default:
      pair.PassStray(input.Byte() % 3);
      return true;
  }
}

}  // namespace

bool SharedMemory(const std::string& bytes) {
  Input input(bytes);
  Pair pair = Pair::Make();
  pair.alice.channels->Start();
  AwaitWorker();
  bool fine = true;
  for (int steps = 0; fine && !input.empty() && steps < 64; ++steps) {
    fine = Step(pair, input);
  }
  for (Side* side : {&pair.alice, &pair.bob}) side->channels->Close();
  AwaitWorker();
  for (const rpc::TensorChannelInfo& info : pair.alice.channels->info()) {
    BATON_CHECK(info.leases == 0 && info.leased_bytes == 0);
  }
  // What came stays until it is dropped.
  for (const rpc::Message& message : pair.alice.kept) {
    for (const Tensor& tensor : message.tensors) {
      std::memset(tensor.raw_data(), 2, tensor.nbytes());
    }
  }
  return fine;
}

}  // namespace baton::fuzz
