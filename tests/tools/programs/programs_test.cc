// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// The programs as their users meet them: one line, an exit code, no hang.

#include <fcntl.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/programs/run_program.h"

namespace baton::tools {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(BatonWorker, EndsWithOneLineAndCode2ForAWrongFlag) {
  const Outcome outcome = RunProgram({"baton-worker", "--treads=2"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.output,
            "baton-worker: unknown flag --treads (do you mean --threads?); see "
            "--help\n");
  EXPECT_EQ(RunProgram({"baton-worker", "--name=a", "--log=loud"}).code, 2);
  EXPECT_EQ(RunProgram({"baton-worker", "--name=a", "--cores=x"}).code, 2);
  const Outcome negative =
      RunProgram({"baton-worker", "--name=a", "--shutdown_timeout=-1s"});
  EXPECT_EQ(negative.code, 2);
  EXPECT_THAT(negative.output, HasSubstr("--shutdown_timeout=-1s"));
}

TEST(BatonWorker, SaysThatItHasNoNameOrNobodyToMeet) {
  EXPECT_THAT(RunProgram({"baton-worker"}).output, HasSubstr("--name"));
  const Outcome outcome = RunProgram({"baton-worker", "--name=a"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.output, HasSubstr("--rendezvous"));
}

TEST(BatonWorker, NamesTheRendezvousThatCannotBeReached) {
  const Outcome outcome =
      RunProgram({"baton-worker", "--name=a", "--rendezvous=127.0.0.1:1",
                  "--world_size=2", "--join_timeout=500ms"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("127.0.0.1:1"));
}

TEST(BatonWorker, NamesTheDeviceThatIsNotThere) {
  const std::vector<std::string> worker = {"baton-worker", "--name=a",
                                           "--peers=a=127.0.0.1:1"};
  const auto with = [&](const std::string& flag) {
    std::vector<std::string> args = worker;
    args.push_back(flag);
    return RunProgram(args);
  };
  const Outcome missing = with("--device=cuda:63");
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.output, HasSubstr("--device=cuda:63: "));
  const Outcome unknown = with("--device=nonsense");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.output, HasSubstr("--device: device \"nonsense\" is none "
                                        "of \"cpu\", \"cuda\" and"));
}

// A port of 127.0.0.1 that is listened on.
class BusyPort {
 public:
  BusyPort() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(holder_, any, size), 0);
    EXPECT_EQ(::listen(holder_, 1), 0);
    ::getsockname(holder_, any, &size);
    number_ = ntohs(address.sin_port);
  }
  ~BusyPort() { ::close(holder_); }
  int number() const { return number_; }

 private:
  const int holder_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int number_ = 0;
};

TEST(BatonWorker, NamesTheBusyPort) {
  const BusyPort port;
  const std::string place = absl::StrCat("127.0.0.1:", port.number());
  const Outcome outcome = RunProgram(
      {"baton-worker", "--name=a", absl::StrCat("--peers=a=", place)});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr(place));
}

// Nobody serves the rendezvous: who asked there would say so.
TEST(BatonWorker, NamesTheBusyPortForMetricsBeforeItJoins) {
  const BusyPort port;
  const std::string flag = absl::StrCat("--metrics_port=", port.number());
  const Outcome outcome =
      RunProgram({"baton-worker", "--name=a", "--rendezvous=127.0.0.1:1",
                  "--world_size=2", "--join_timeout=500ms", flag});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("--metrics_port"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("rendezvous")));
}

TEST(BatonWorker, ServesUntilItIsAskedToEnd) {
  const std::string place =
      absl::StrCat("unix:/tmp/baton_worker_test_", ::getpid());
  bool asked = false;
  const Outcome outcome =
      RunProgram({"baton-worker", "--name=a", absl::StrCat("--peers=a=", place),
                  "--log=info"},
                 [&](const std::string& output, const Process& process) {
                   if (asked || output.find("serving at") == std::string::npos)
                     return;
                   asked = true;
                   SendSignal(process, SIGTERM);
                 });
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("shutting down"));
}

TEST(BatonWorker, LoadsPluginsAndNamesTheOneThatItCannot) {
  const std::string scale = testing::ProgramPath("plugins/libscale.so");
  const std::string shift = testing::ProgramPath("plugins/libshift.so");
  const std::string place =
      absl::StrCat("unix:/tmp/baton_plugin_test_", ::getpid());
  const std::vector<std::string> args = {"baton-worker", "--name=a",
                                         "--peers=a=" + place, "--log=info"};
  const auto with = [&](const std::string& plugins) {
    std::vector<std::string> all = args;
    all.push_back("--plugin=" + plugins);
    bool asked = false;
    return RunProgram(
        all, [&asked](const std::string& output, const Process& worker) {
          if (asked || output.find("serving at") == std::string::npos) return;
          asked = true;
          SendSignal(worker, SIGTERM);
        });
  };
  const Outcome fine = with(scale + "," + shift);
  EXPECT_EQ(fine.code, 0) << fine.output;
  EXPECT_THAT(fine.output, HasSubstr("loaded plug-in " + scale));
  EXPECT_THAT(fine.output, HasSubstr("loaded plug-in " + shift));
  const Outcome twice = with(scale + "," + scale);
  EXPECT_EQ(twice.code, 1);
  EXPECT_THAT(twice.output, HasSubstr("Scale is registered twice"));
  const Outcome missing = with("/no/such.so");
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(missing.output,
            "baton-worker: plug-in /no/such.so: no such file\n");
}

TEST(Batonctl, SaysWhatIsWrong) {
  const auto wrong = [](std::vector<std::string> words) {
    words.insert(words.begin(), "batonctl");
    const Outcome outcome = RunProgram(words);
    EXPECT_EQ(outcome.code, 2);
    return outcome.output;
  };
  EXPECT_EQ(wrong({"stauts"}),
            "batonctl: batonctl takes status, rrefs, contexts, channels or "
            "trace, not 'stauts' (do you mean status?)\n");
  EXPECT_EQ(wrong({"status", "rrefs"}),
            "batonctl: unexpected argument 'rrefs'; see --help\n");
  EXPECT_EQ(wrong({}),
            "batonctl: a command is missing, as in: batonctl status; see "
            "--help\n");
  EXPECT_EQ(RunProgram({"batonctl", "status", "--worker=a"}).code, 2);
  for (const std::string flag :
       {"--timeout=0", "--interval=-1s", "--seconds=0", "--seconds=1e300",
        "--seconds=nan", "--times=-1"}) {
    const Outcome outcome = RunProgram({"batonctl", "status", flag});
    EXPECT_EQ(outcome.code, 2) << flag;
    EXPECT_THAT(outcome.output, HasSubstr(flag.substr(0, flag.find('='))));
  }
  const Outcome outcome = RunProgram(
      {"batonctl", "status", "--worker=a=127.0.0.1:1", "--timeout=300ms"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("127.0.0.1:1"));
}

// For a script a table that was not written is a failure.
TEST(Batonctl, FailsWhenItsOutputIsNotTaken) {
  const Outcome outcome = RunProgram(
      {"/bin/sh", "-c",
       absl::StrCat(testing::ProgramPath("batonctl"), " --help > /dev/full")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.output,
            "batonctl: cannot write to standard output: No space left on "
            "device\n");
}

TEST(Batonctl, ShowsARunningWorker) {
  const std::string flag =
      absl::StrCat("--worker=a=unix:/tmp/baton_status_test_", ::getpid());
  const Outcome outcome = WithWorker("status", {}, [&](const std::string&) {
    const Outcome status = RunProgram({"batonctl", "status", flag});
    EXPECT_EQ(status.code, 0) << status.output;
    EXPECT_THAT(status.output, ContainsRegex("workers: 1\nWORKER +RANK"));
    EXPECT_THAT(status.output, ContainsRegex("\na +0  cpu +idle"));
    for (const std::string command : {"rrefs", "contexts", "channels"}) {
      const Outcome table = RunProgram({"batonctl", command, flag});
      EXPECT_EQ(table.code, 0) << table.output;
      EXPECT_THAT(table.output, HasSubstr(command + ": none"));
    }
    const Outcome json = RunProgram({"batonctl", "status", flag, "--json"});
    const auto parsed = nlohmann::json::parse(json.output, nullptr, false);
    ASSERT_FALSE(parsed.is_discarded()) << json.output;
    EXPECT_EQ(parsed["workers"][0]["worker"], "a");
    EXPECT_TRUE(parsed["calls"].empty());
    const Outcome watched = RunProgram({"batonctl", "status", flag, "--watch",
                                        "--times=3", "--interval=10ms"});
    EXPECT_EQ(watched.code, 0) << watched.output;
    size_t shown = 0;
    for (size_t at = watched.output.find("workers: 1"); at != std::string::npos;
         at = watched.output.find("workers: 1", at + 1))
      ++shown;
    EXPECT_EQ(shown, 3u);
  });
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST(Batonctl, TracesARunningCluster) {
  const std::string file =
      absl::StrCat(::testing::TempDir(), "/batonctl_trace_", ::getpid());
  const Outcome outcome = WithWorker("trace", {}, [&](const std::string&) {
    const Outcome trace = RunProgram(
        {"batonctl", "trace", "--seconds=0.1", "--out=" + file,
         absl::StrCat("--worker=a=unix:/tmp/baton_trace_test_", ::getpid())});
    EXPECT_EQ(trace.code, 0) << trace.output;
    EXPECT_THAT(trace.output, HasSubstr("of 1 workers"));
  });
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  std::ifstream in(file);
  const auto parsed = nlohmann::json::parse(in, nullptr, false);
  ASSERT_FALSE(parsed.is_discarded());
  EXPECT_TRUE(parsed["otherData"].contains("a"));
}

TEST(BatonWorker, ServesMetricsWhereItSays) {
  const Outcome outcome = WithWorker(
      "metrics", {"--metrics_port=0"}, [](const std::string& output) {
        const std::string before = "metrics at http://127.0.0.1:";
        const size_t at = output.find(before);
        ASSERT_NE(at, std::string::npos) << output;
        httplib::Client client("127.0.0.1",
                               std::atoi(output.c_str() + at + before.size()));
        const auto response = client.Get("/metrics");
        ASSERT_TRUE(response);
        EXPECT_EQ(response->status, 200);
        EXPECT_THAT(response->body,
                    ContainsRegex("baton_info\\{version=\"[0-9.]+\",worker="
                                  "\"a\",rank=\"0\",compute=\"cpu\"\\} "
                                  "1\n"));
      });
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(
      RunProgram({"baton-worker", "--name=a", "--metrics_port=70000"}).code, 2);
}

}  // namespace
}  // namespace baton::tools
