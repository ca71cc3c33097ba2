// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A worker in a process of its own to whose GPU tensors come:
//   gpu_peer NAME DEVICE
// Writes its address on a line of its own and ends when its input does. It
// answers by the header:
//   tell     where the tensors are, and the sum of each, which must be
//            whole: "cuda:1 45 cpu 3"
//   echo...  with the tensors
//   keep...  with nothing, and holds them
//   channel  what its channels have done
//   late     with a tensor of 1,000,000 sevens that takes seconds to be ready;
//            writes "late" on a line of its own when the GPU has begun

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/debugging/failure_signal_handler.h"
#include "absl/debugging/symbolize.h"
#include "absl/strings/str_cat.h"
#include "core/executor.h"
#include "core/mutex.h"
#include "core/ops/matmul.h"
#include "tests/rpc/peer/serve.h"

namespace baton::rpc {
namespace {

std::string Told(const Message& message) {
  std::string told;
  for (const Tensor& tensor : message.tensors) {
    double sum = 0;
    const Tensor host = tensor.To(Device::Cpu()).To(DType::kF64);
    for (const double value : host.ToVector<double>()) sum += value;
    absl::StrAppend(&told, told.empty() ? "" : " ", tensor.device().ToString(),
                    " ", static_cast<int64_t>(sum));
  }
  return told;
}

Tensor Late(Device gpu) {
  const Tensor square = Tensor::Ones({8192, 8192}, {.device = gpu});
  const Tensor sevens = Tensor::Zeros({1'000'000}, {.device = gpu});
  Synchronize(gpu);
  for (int i = 0; i < 200; ++i) (void)ops::Matmul(square, square);
  sevens.Fill(7);
  std::printf("late\n");
  std::fflush(stdout);
  return sevens;
}

class Peer final : public MessageHandler {
 public:
  Peer(Transport& transport, Device gpu) : transport_(transport), gpu_(gpu) {}

  void OnMessage(const WorkerInfo& from, Message message) override {
    thread_.Post(
        [this, to = from.name, message = std::move(message)]() mutable {
          Answer(to, std::move(message));
        });
  }
  void OnPeerLost(const WorkerInfo&, absl::Status) override {}

 private:
  void Answer(const std::string& to, Message message) {
    const std::string asked = message.header;
    if (asked == "tell") {
      message = {Told(message), {}};
    } else if (asked == "channel") {
      message = {ChannelsTold(), {}};
    } else if (asked == "late") {
      message = {asked, {Late(gpu_)}};
    } else if (asked.rfind("keep", 0) == 0) {
      kept_.insert(kept_.end(), message.tensors.begin(), message.tensors.end());
      message.tensors.clear();
    }
    message.receipt = nullptr;
    transport_.Send(to, std::move(message), nullptr);
  }

  std::string ChannelsTold() const {
    std::string told;
    for (const TensorChannelInfo& info : transport_.TensorChannels()) {
      absl::StrAppend(&told, info.name, " ", info.state(), " ", info.why_not,
                      ", ", info.tensors_sent, " sent, ", info.declined,
                      " declined, ", info.leases, " out; ");
    }
    return told;
  }

  Transport& transport_;
  const Device gpu_;
  std::vector<Tensor> kept_;  // the thread's
  ThreadPool thread_{1, "gpu-peer"};
};

int Run(const std::string& name, Device device) {
  return ServeTransport(
      {.device = device}, name, 4711,
      [&](Transport& transport) { return Peer(transport, device); });
}

}  // namespace
}  // namespace baton::rpc

int main(int argc, char** argv) {
  absl::InitializeSymbolizer(argv[0]);
  absl::InstallFailureSignalHandler({});
  if (argc != 3) return 2;
  return baton::rpc::Run(argv[1], baton::Device::Parse(argv[2]).value());
}
