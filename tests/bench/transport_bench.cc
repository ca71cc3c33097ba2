// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What the streams of the gRPC transport, and its channel by TCP, cost above a
// bare socket, in one run, as between machines: neither tensors nor messages go
// by shared memory.
//   transport_bench [rounds [text]]
// Two processes; the rounds of all rows are interleaved. One JSON line a row:
// medians over the rounds, and the ratio to the bare socket of the same kind.
// If there is a text, only the rows with it in their name, and bare sockets.

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/mutex.h"
#include "core/status.h"
#include "rpc/security.h"
#include "rpc/transports/grpc.h"
#include "tests/bench/bare_socket.h"
#include "tests/bench/timing.h"
#include "tests/support/child_process.h"
#include "tests/support/program_path.h"
#include "tests/support/test_files.h"
#include "tools/certificates.h"

namespace baton::rpc {
namespace {

using bench::BareSocket;
using bench::Median;
using bench::TimeOf;

// Waits for the answer to each message.
class Caller final : public MessageHandler {
 public:
  void OnMessage(const WorkerInfo&, Message) override {
    MutexLock lock(mutex_);
    ++answers_;
    changed_.NotifyOne();
  }
  void OnPeerLost(const WorkerInfo&, absl::Status why) override {
    std::fprintf(stderr, "%s\n", why.ToString().c_str());
    std::_Exit(1);
  }
  void AwaitAnswers(int count) {
    MutexLock lock(mutex_);
    while (answers_ < count) changed_.Wait(mutex_);
    answers_ -= count;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int answers_ ABSL_GUARDED_BY(mutex_) = 0;
};

// How a pair of workers talks.
struct Way {
  bool tcp = false;
  bool inline_delivery = false;
  bool tensors_beside = false;    // by a TCP connection of their own
  std::string certificates = {};  // a folder of them: mutual TLS
};

Security SecurityOf(const std::string& folder) {
  if (folder.empty()) return {};
  auto security = LoadSecurity({folder + "/bench.pem", folder + "/bench.key",
                                folder + "/ca.pem", /*token=*/""},
                               "bench");
  BATON_CHECK(security.ok());
  return *std::move(security);
}

class GrpcPair {
 public:
  GrpcPair(const std::string& echo_peer, const Way& way)
      : child_(CommandOf(echo_peer, way)),
        transport_(
            *MakeGrpcTransport({.shared_memory = false,
                                .message_ring = false,
                                .tcp_tensors = way.tensors_beside,
                                .inline_delivery = way.inline_delivery,
                                .security = SecurityOf(way.certificates)})) {
    std::string address = child_.ReadLine();
    if (way.tcp) address = address.substr(0, address.find(';'));
    const absl::Status started = transport_->Start(
        {"bench", Rank{0}, 1, transport_->address()}, &caller_);
    BATON_CHECK(started.ok());
    transport_->AddPeer({"peer", Rank{1}, 4711, address});
    if (way.tensors_beside) AwaitChannel();
  }
  ~GrpcPair() { transport_->Shutdown(std::chrono::milliseconds(1000)); }

  void Transfer(const Message& message) {
    transport_->Send("peer", message, nullptr);
    caller_.AwaitAnswers(1);
  }
  void Burst(const Message& message, int count) {
    for (int i = 0; i < count; ++i) transport_->Send("peer", message, nullptr);
    caller_.AwaitAnswers(count);
  }

 private:
  void AwaitChannel() {
    do {
      Transfer({"ack", {}});
    } while (!transport_->TensorChannels().at(0).open);
  }
  static std::vector<std::string> CommandOf(const std::string& echo_peer,
                                            const Way& way) {
    std::vector<std::string> command{echo_peer, "peer"};
    if (way.inline_delivery) command.push_back("inline");
    if (!way.certificates.empty()) command.push_back(way.certificates);
    return command;
  }

  ChildProcess child_;
  Caller caller_;
  std::unique_ptr<Transport> transport_;
};

struct Row {
  std::string name;
  size_t bytes;
  std::string against;  // the row that it is compared with
  std::function<double()> measure;
  std::vector<double> times = {};
};

void Print(const Row& row, double time, double base) {
  std::printf("{\"row\": \"%s\", \"bytes\": %zu, \"us\": %.1f",
              row.name.c_str(), row.bytes, time);
  if (row.bytes > 64) {
    std::printf(", \"gb_s\": %.2f",
                static_cast<double>(row.bytes) / time / 1e3);
  }
  if (base > 0) std::printf(", \"times_the_socket\": %.2f", time / base);
  std::printf("}\n");
}

int Run(const std::string& echo_peer, int rounds, const std::string& text) {
  // Before any gRPC object: fork after that is not safe.
  BareSocket unix_socket(false), tcp_socket(true);
  const testing::TempFolder certificates;
  BATON_CHECK(tools::WriteCertificates(
                  certificates.path(), {"bench", "peer"},
                  {absl::Now() - absl::Hours(1), absl::Now() + absl::Hours(1)})
                  .ok());
  GrpcPair unix_pair(echo_peer, {});
  GrpcPair tcp_pair(echo_peer, {.tcp = true});
  GrpcPair unix_inline(echo_peer, {.inline_delivery = true});
  GrpcPair tcp_inline(echo_peer, {.tcp = true, .inline_delivery = true});
  GrpcPair beside(echo_peer, {.tcp = true, .tensors_beside = true});
  GrpcPair beside_inline(
      echo_peer,
      {.tcp = true, .inline_delivery = true, .tensors_beside = true});
  GrpcPair tls_pair(echo_peer,
                    {.tcp = true, .certificates = certificates.path()});
  GrpcPair beside_tls(echo_peer, {.tcp = true,
                                  .tensors_beside = true,
                                  .certificates = certificates.path()});
  std::vector<std::pair<std::string, GrpcPair*>> pairs = {
      {"grpc unix", &unix_pair},
      {"grpc tcp", &tcp_pair},
      {"grpc unix inline", &unix_inline},
      {"grpc tcp inline", &tcp_inline},
      {"tensors by tcp", &beside},
      {"tensors by tcp, inline", &beside_inline},
      {"grpc tcp, mutual TLS", &tls_pair},
      {"tensors by tcp, mutual TLS", &beside_tls}};
  std::erase_if(pairs, [&text](const auto& pair) {
    return pair.first.find(text) == std::string::npos;
  });
  std::vector<Row> rows;
  for (size_t bytes :
       {size_t{0}, size_t{1} << 20, size_t{16} << 20, size_t{64} << 20}) {
    const int count = bytes == 0 ? 2000 : bytes <= 1 << 20 ? 100 : 8;
    auto data = std::make_shared<std::vector<char>>(bytes, 'x');
    for (auto [name, socket] : {std::pair("socket unix", &unix_socket),
                                std::pair("socket tcp", &tcp_socket)}) {
      rows.push_back({name, std::max(bytes, size_t{64}), "",
                      [socket = socket, data, count] {
                        return TimeOf(count, [&] { socket->Transfer(*data); });
                      }});
    }
    Message message{bytes == 0 ? std::string(64, 'm') : "ack", {}};
    if (bytes > 0) {
      message.tensors.push_back(
          Tensor::Zeros({static_cast<int64_t>(bytes)}, {.dtype = DType::kU8}));
    }
    for (const auto& [name, pair] : pairs) {
      rows.push_back({name, std::max(bytes, size_t{64}),
                      name.find("unix") != std::string::npos ? "socket unix"
                                                             : "socket tcp",
                      [pair = pair, message, count] {
                        return TimeOf(count, [&] { pair->Transfer(message); });
                      }});
    }
  }
  for (int round = 0; round < rounds; ++round) {
    for (Row& row : rows) row.times.push_back(row.measure());
  }
  std::map<std::pair<std::string, size_t>, double> medians;
  for (const Row& row : rows) {
    const double time = medians[{row.name, row.bytes}] = Median(row.times);
    Print(row, time,
          row.against.empty() ? 0 : medians[{row.against, row.bytes}]);
  }
  const Message small{std::string(64, 'm'), {}};
  for (const auto& [name, pair] : pairs) {
    const double time =
        TimeOf(200, [&, pair = pair] { pair->Burst(small, 320); });
    std::printf("{\"row\": \"%s, 320 in flight\", \"messages_per_s\": %.0f}\n",
                name.c_str(), 320 / time * 1e6);
  }
  return 0;
}

}  // namespace
}  // namespace baton::rpc

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  return baton::rpc::Run(baton::testing::ProgramPath("echo_peer"),
                         argc > 1 ? std::atoi(argv[1]) : 5,
                         argc > 2 ? argv[2] : "");
}
