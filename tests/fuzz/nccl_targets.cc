// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <memory>
#include <string>

#include "core/future.h"
#include "core/status.h"
#include "rpc/channels/dense_view.h"
#include "rpc/channels/nccl_end.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

// Words and tickets of a channel by NCCL, as its end reads them. Memory is the
// CPU's, and what is posted to a line ends at once.
namespace baton::fuzz {
namespace {

std::atomic<int> lines{0};

class Line final : public cuda::NcclLine {
 public:
  Line() { ++lines; }
  ~Line() override { Abort(); }
  absl::StatusOr<bool> IsOpen() override { return !aborted_; }
  absl::Status Post(const Tensor&) override { return absl::OkStatus(); }
  absl::StatusOr<bool> HaveBeenGiven(uint64_t posts) override {
    return HaveEnded(posts);
  }
  absl::StatusOr<bool> HaveEnded(uint64_t) override {
    if (aborted_) return absl::CancelledError("aborted");
    return true;
  }
  void Close() override {}
  void Abort() override {
    if (!aborted_.exchange(true)) --lines;
  }

 private:
  std::atomic<bool> aborted_{false};
};

class Network final : public rpc::NcclGpu {
 public:
  absl::StatusOr<std::string> Version() override { return std::string("2"); }
  absl::StatusOr<std::string> NewId() override { return std::string("id"); }
  absl::StatusOr<std::shared_ptr<cuda::NcclLine>> Join(const std::string& id,
                                                       bool) override {
    if (id.size() % 2 == 1) return absl::InvalidArgumentError("no such id");
    return std::make_shared<Line>();
  }
  absl::StatusOr<rpc::Poller::Question> WhenWritten(const Tensor&) override {
    return rpc::Poller::Question([] { return true; });
  }
  absl::StatusOr<Tensor> Make(const rpc::TensorSpec& spec) override {
    return rpc::DenseView(Storage::Allocate(spec.bytes, Device::Cpu()), spec);
  }
};

class Gpu final : public rpc::IpcGpu {
 public:
  int count() const override { return 1; }
  int own() const override { return 0; }
  absl::StatusOr<std::string> Uuid() override { return std::string("one"); }
  std::optional<Place> Find(const Tensor&) override { return std::nullopt; }
  absl::StatusOr<std::string> Share(const Place&) override { return None(); }
  void Unshare(const Place&) override {}
  absl::StatusOr<Event> MakeEvent(int) override { return None(); }
  absl::Status Record(const Event&, const Tensor&) override { return None(); }
  absl::StatusOr<std::shared_ptr<void>> OpenSegment(
      const std::string&) override {
    return None();
  }
  absl::StatusOr<std::shared_ptr<void>> OpenEvent(const std::string&) override {
    return None();
  }
  bool HasEnded(const std::shared_ptr<void>&) override { return true; }
  absl::StatusOr<Tensor> Make(const rpc::TensorSpec&) override {
    return None();
  }
  absl::StatusOr<rpc::Poller::Question> Copy(const Tensor&,
                                             const void*) override {
    return None();
  }
  absl::StatusOr<Tensor> Upload(const Tensor& host, int) override {
    return host;
  }
  absl::StatusOr<Tensor> Download(const Tensor& tensor) override {
    return tensor;
  }

 private:
  static absl::Status None() { return absl::UnimplementedError("none"); }
};

class DeafPort final : public rpc::ChannelPort {
 public:
  explicit DeafPort(std::atomic<bool>& failed) : failed_(failed) {}
  void Say(std::string) override {}
  void Release(uint64_t) override { BATON_CHECK(false); }
  void Opened() override {}
  void Failed(std::string) override { failed_ = true; }

 private:
  std::atomic<bool>& failed_;
};

// What was said has been heard, and what came of it has been done.
void Settle(const rpc::NcclParts& parts) {
  for (int depth = 0; depth < 3; ++depth) {
    const Promise<void> polled, ran;
    parts.poller->Add([polled] {
      polled.Set(absl::OkStatus());
      return true;
    });
    BATON_CHECK(polled.future().Await(kNoLimit).ok());
    parts.executor->Post([ran] { ran.Set(absl::OkStatus()); });
    BATON_CHECK(ran.future().Await(kNoLimit).ok());
  }
}

// False where the ticket is refused.
bool Import(rpc::NcclEnd& end, Input& input) {
  const auto count = static_cast<int64_t>(input.Byte());
  const rpc::TensorSpec spec{.shape = Shape({count}),
                             .bytes = static_cast<uint64_t>(count) * 4};
  const auto imported = end.Import(spec, input.Chunk());
  BATON_CHECK(!imported.ok() || imported->tensor.nbytes() == spec.bytes);
  return imported.ok();
}

}  // namespace

bool Nccl(const std::string& bytes) {
  Input input(bytes);
  rpc::NcclParts parts{
      .gpu = std::make_shared<Gpu>(),
      .nccl = std::make_shared<Network>(),
      .poller = std::make_shared<rpc::Poller>("fuzz-nccl-poll"),
      .rescuer = std::make_shared<rpc::Poller>("fuzz-nccl-loss"),
      .executor = std::make_shared<ThreadPool>(1, "fuzz-nccl"),
      .breaks = std::make_shared<std::atomic<int>>(0),
      .options = {.trusted_fabric = true}};
  const bool leads = input.Byte() % 2 == 1;
  bool taken = true;
  std::atomic<bool> failed{false};
  auto end = std::make_shared<rpc::NcclEnd>(parts, leads,
                                            std::make_shared<DeafPort>(failed));
  if (leads) end->Start();
  for (int steps = 0; !input.empty() && steps < 64; ++steps) {
    if (input.Byte() % 2 == 0) {
      end->OnSaid(input.Chunk());
    } else {
      taken &= Import(*end, input);
    }
    Settle(parts);
  }
  taken &= !failed;
  end->OnLost();
  Settle(parts);
  end = nullptr;
  parts.poller = nullptr;
  parts.rescuer = nullptr;
  BATON_CHECK(rpc::AwaitAborts(std::chrono::seconds(60)));
  BATON_CHECK(lines == 0);
  return taken;
}

}  // namespace baton::fuzz
