// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What calls between two processes cost, beside the limits of the machine:
//   bench_rpc [rounds [text]]
// Prints JSON lines: medians over the rounds of each round's median and 99th
// percentile, with the rows interleaved; only those with the text in their
// name, if there is one ("in place" brings the 64 B that it is judged by). Rows
// whose names begin with "rpc_" or "remote" do what a peer framework's
// benchmark does under the same names.

#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cuda/memory.h"
#include "core/mutex.h"
#include "core/status.h"
#include "core/stream.h"
#include "rpc/cluster.h"
#include "rpc/transports/grpc.h"
#include "tests/bench/bare_socket.h"
#include "tests/bench/timing.h"
#include "tests/support/child_process.h"
#include "tests/support/program_path.h"

namespace baton::bench {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;

int64_t FaultsHere() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}
double CpuSecondsHere() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// What the other process serves.
Tensor Nop(const Tensor&) { return Tensor::Zeros({1}); }
// Answers when the tensor is there, and not only on its way.
Tensor NopThere(const Tensor& tensor) {
  Synchronize(tensor.device());
  return Tensor::Zeros({1});
}
Tensor Echo(const Tensor& tensor) { return tensor; }
void NopNone() {}
int64_t Faults() { return FaultsHere(); }
double CpuSeconds() { return CpuSecondsHere(); }

rpc::Registry Served() {
  rpc::Registry registry;
  registry.AddFunction<&Nop>();
  registry.AddFunction<&NopThere>();
  registry.AddFunction<&Echo>();
  registry.AddFunction<&NopNone>();
  registry.AddFunction<&Faults>();
  registry.AddFunction<&CpuSeconds>();
  return registry;
}

// Of the two workers: two GPUs, or the only one, or none.
Device DeviceOf(const std::string& name) {
  const int count = cuda::DeviceCount();
  if (count == 0) return Device::Cpu();
  return Device::Cuda(name == "w1" && count > 1 ? 1 : 0);
}

std::unique_ptr<rpc::Agent> Join(const std::string& name,
                                 const std::string& peers) {
  rpc::ClusterOptions options;
  options.name = name;
  options.peers = peers;
  options.device = DeviceOf(name);
  options.agent.worker_threads = 16;
  auto agent = rpc::JoinCluster(std::move(options), Served());
  if (!agent.ok()) {
    std::cerr << agent.status() << "\n";
    std::exit(1);
  }
  return *std::move(agent);
}

// Two ports that nobody listens on.
std::string TwoWorkers() {
  std::string list;
  int sockets[2];
  for (int i = 0; i < 2; ++i) {
    sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    BATON_CHECK(bind(sockets[i], any, size) == 0);
    BATON_CHECK(getsockname(sockets[i], any, &size) == 0);
    absl::StrAppend(&list, i == 0 ? "" : ",", "w", i,
                    "=127.0.0.1:", ntohs(address.sin_port));
  }
  for (int fd : sockets) close(fd);
  return list;
}

struct Row {
  std::string what;
  size_t bytes;         // moved by one call; 0: of no interest
  int calls_at_a_time;  // above 1 the row tells calls per second
  int count, warm;
  std::function<void()> call;
  std::vector<double> medians = {}, p99s = {};
};

void Print(const Row& row) {
  const double median = Median(row.medians);
  std::printf("{\"what\": \"%s\"", row.what.c_str());
  if (row.calls_at_a_time > 1) {
    std::printf(", \"calls_per_s\": %.0f", row.calls_at_a_time / median * 1e6);
  } else {
    std::printf(", \"median_us\": %.1f, \"p99_us\": %.1f", median,
                Median(row.p99s));
  }
  if (row.bytes > 0) {
    std::printf(", \"GBps\": %.3f",
                static_cast<double>(row.bytes) / median * 1e-3);
  }
  std::printf("}\n");
  std::fflush(stdout);
}

// Rows of calls to w1.
class Calls {
 public:
  explicit Calls(rpc::Agent& agent) : agent_(agent) {}

  void Add(std::vector<Row>& rows) {
    rows.push_back({"rpc_sync nop none", 0, 1, 2000, 20,
                    [this] { Check(agent_.Async<&NopNone>("w1").Await()); }});
    rows.push_back({"rpc_sync 64B cpu", 0, 1, 2000, 20, [this] {
                      Check(agent_.Async<&Nop>("w1", small_).Await().status());
                    }});
    rows.push_back(
        {"rpc_async 64B in flight 256", 0, 256, 40, 3, [this] { Burst(256); }});
    rows.push_back(
        {"rpc_async 64B in flight 32", 0, 32, 200, 10, [this] { Burst(32); }});
    rows.push_back({"remote + to_here", 0, 1, 500, 20, [this] {
                      RRef<Tensor> there = agent_.Remote<&Nop>("w1", small_);
                      Check(there.Fetch().Await().status());
                    }});
    for (size_t megabytes : {1, 16, 64, 256}) AddLarge(megabytes, rows);
    for (size_t megabytes : {1, 16, 64}) AddInPlace(megabytes, rows);
    const Device gpu = DeviceOf("w0");
    if (!gpu.is_cuda()) return;
    AddCuda("rpc_sync 64B cuda", {16}, 500, rows);
    for (int64_t megabytes : {1, 16, 64, 256, 1024}) {
      AddCuda(absl::StrCat("rpc_sync send ", megabytes, "MB cuda"),
              {megabytes << 18}, 20, rows);
    }
  }

 private:
  static void Check(const absl::Status& status) {
    if (status.ok()) return;
    std::cerr << status << "\n";
    std::exit(1);
  }
  void Burst(int count) {
    std::vector<Future<Tensor>> futures;
    for (int i = 0; i < count; ++i) {
      futures.push_back(agent_.Async<&Nop>("w1", small_));
    }
    Check(WaitAll(futures).Await().status());
  }
  void AddLarge(size_t megabytes, std::vector<Row>& rows) {
    const auto elements = static_cast<int64_t>(megabytes << 18);
    const Tensor tensor = Tensor::Zeros({elements});
    const int count = megabytes <= 1 ? 200 : 20;
    rows.push_back({absl::StrCat("rpc_sync send ", megabytes, "MB cpu"),
                    tensor.nbytes(), 1, count, 3, [this, tensor] {
                      Check(agent_.Async<&Nop>("w1", tensor).Await().status());
                    }});
    rows.push_back({absl::StrCat("rpc_sync echo ", megabytes, "MB cpu"),
                    2 * tensor.nbytes(), 1, count, 3, [this, tensor] {
                      Check(agent_.Async<&Echo>("w1", tensor).Await().status());
                    }});
  }

  // Made where w1 sees it and moved into the call. Who fills it computes it, so
  // there are rows with that as well, and beside them the same by a copy.
  void AddInPlace(size_t megabytes, std::vector<Row>& rows) {
    const Shape shape({static_cast<int64_t>(megabytes << 18)});
    const auto place = [this, shape] {
      auto tensor = agent_.EmptyFor("w1", shape);
      Check(tensor.status());
      return *std::move(tensor);
    };
    const auto add = [&](const char* what, std::function<Tensor()> make) {
      rows.push_back({absl::StrCat(what, " ", megabytes, "MB cpu"),
                      megabytes * kMegabyte, 1, megabytes <= 1 ? 200 : 50, 10,
                      [this, make] {
                        auto done = agent_.Async<&Nop>("w1", make());
                        Check(done.Await().status());
                      }});
    };
    add("in place", place);
    add("fill, then in place", [place] { return Tensor(place().Fill(1)); });
    add("fill, not in place",
        [shape] { return Tensor(Tensor::Empty(shape).Fill(1)); });
    AwaitPlace(place);
  }
  // It is made when it is first asked for.
  void AwaitPlace(const std::function<Tensor()>& place) {
    Check(agent_.Async<&NopNone>("w1").Await());
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    while (Clock::now() < deadline) {
      const Tensor tensor = place();
      for (const auto& info : agent_.GetDebugInfo().tensor_channels) {
        if (info.made_bytes > 0) return;
      }
    }
    Check(absl::DeadlineExceededError("no place for tensors"));
  }

  // From this GPU to the other process's, until it is there.
  void AddCuda(const std::string& what, const Shape& shape, int count,
               std::vector<Row>& rows) {
    const Tensor tensor = Tensor::Zeros(shape, {.device = DeviceOf("w0")});
    rows.push_back(
        {what, count < 100 ? tensor.nbytes() : 0, 1, count, 10, [this, tensor] {
           Check(agent_.Async<&NopThere>("w1", tensor).Await().status());
         }});
  }

  rpc::Agent& agent_;
  const Tensor small_ = Tensor::Zeros({16});
};

// Tensors in place have 1.3 round trips of 64 B and 3 us for each MB.
void PrintInPlace(rpc::Agent& agent, const std::vector<Row>& rows) {
  double control = 0;
  for (const Row& row : rows) {
    if (row.what == "rpc_sync 64B cpu") control = Median(row.medians);
    if (control == 0 || row.what.rfind("in place", 0) != 0) continue;
    const double limit =
        1.3 * control + 3 * static_cast<double>(row.bytes / kMegabyte);
    std::printf(
        "{\"what\": \"limit: %s\", \"limit_us\": %.1f, \"used\": %.2f}\n",
        row.what.c_str(), limit, Median(row.medians) / limit);
  }
  for (const auto& info : agent.GetDebugInfo().tensor_channels) {
    if (info.sent_in_place == 0) continue;
    std::printf("{\"what\": \"tensors sent in place\", \"count\": %llu}\n",
                static_cast<unsigned long long>(info.sent_in_place));
  }
}

// What two GPUs do for one process.
void AddPeerCopies(std::vector<Row>& rows) {
  const Device from = DeviceOf("w0"), to = DeviceOf("w1");
  for (int64_t megabytes : {64, 256, 1024}) {
    const Tensor tensor = Tensor::Zeros({megabytes << 18}, {.device = from});
    rows.push_back({absl::StrCat("limit: peer copy ", megabytes, "MB"),
                    tensor.nbytes(), 1, 20, 10, [tensor, from, to] {
                      const Tensor there = tensor.To(to);
                      Synchronize(from);
                      Synchronize(to);
                    }});
  }
}

void AddLimits(BareSocket& socket, std::vector<Row>& rows) {
  rows.push_back({"limit: unix socket ping-pong 64B", 0, 1, 2000, 20,
                  [&socket] { socket.Transfer({}); }});
  for (size_t megabytes : {1, 16, 64, 256}) {
    const size_t bytes = megabytes * kMegabyte;
    auto from = std::make_shared<std::vector<char>>(bytes, 'x');
    auto to = std::make_shared<std::vector<char>>(bytes, 'y');
    rows.push_back({absl::StrCat("limit: memcpy ", megabytes, "MB"), bytes, 1,
                    megabytes <= 1 ? 200 : 20, 3, [from, to, bytes] {
                      std::memcpy(to->data(), from->data(), bytes);
                    }});
  }
  if (cuda::DeviceCount() > 1) AddPeerCopies(rows);
}

// What is left of a process between the calls, and what a call leaves there.
void PrintRest(rpc::Agent& agent) {
  const auto ask = [&](auto future) { return *future.Await(); };
  const Tensor tensor = Tensor::Zeros({16 << 20});
  constexpr int kTensors = 20;
  const auto before = ask(agent.Async<&Faults>("w1"));
  for (int i = 0; i < kTensors; ++i) {
    agent.Async<&Nop>("w1", tensor).Await().IgnoreError();
  }
  const auto after = ask(agent.Async<&Faults>("w1"));
  std::printf(
      "{\"what\": \"page faults per received 64MB\", \"faults\": %.1f}\n",
      static_cast<double>(after - before) / kTensors);
  const double cpu_there = ask(agent.Async<&CpuSeconds>("w1"));
  const double cpu_here = CpuSecondsHere();
  constexpr double kSeconds = 3;
  std::this_thread::sleep_for(std::chrono::duration<double>(kSeconds));
  const double used_here = CpuSecondsHere() - cpu_here;
  const double used_there = ask(agent.Async<&CpuSeconds>("w1")) - cpu_there;
  std::printf(
      "{\"what\": \"idle cpu\", \"caller_percent\": %.2f, "
      "\"callee_percent\": %.2f}\n",
      100 * used_here / kSeconds, 100 * used_there / kSeconds);
}

int Run(const char* self, int rounds, const std::string& text) {
  BareSocket socket(false);
  const std::string workers = TwoWorkers();
  ChildProcess child({self, "peer", workers});
  const auto agent = Join("w0", workers);
  Calls calls(*agent);
  std::vector<Row> rows;
  AddLimits(socket, rows);
  calls.Add(rows);
  std::erase_if(rows, [&text](const Row& row) {
    const bool yardstick = text == "in place" && row.what == "rpc_sync 64B cpu";
    return !yardstick && row.what.find(text) == std::string::npos;
  });
  for (int round = 0; round < rounds; ++round) {
    for (Row& row : rows) {
      const auto times = TimesOf(row.count, row.warm, row.call);
      row.medians.push_back(Median(times));
      row.p99s.push_back(Quantile(times, 0.99));
    }
  }
  for (const Row& row : rows) Print(row);
  PrintInPlace(*agent, rows);
  if (text.empty()) PrintRest(*agent);
  return 0;
}

int Serve(const std::string& workers) {
  const auto agent = Join("w1", workers);
  while (std::getchar() != EOF) {
  }
  return 0;
}

}  // namespace
}  // namespace baton::bench

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  if (argc == 3 && std::strcmp(argv[1], "peer") == 0) {
    return baton::bench::Serve(argv[2]);
  }
  const std::string self = baton::testing::ProgramPath("bench_rpc");
  return baton::bench::Run(self.c_str(), argc > 1 ? std::atoi(argv[1]) : 3,
                           argc > 2 ? argv[2] : "");
}
