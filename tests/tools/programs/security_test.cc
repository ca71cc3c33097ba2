// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A protected cluster in two commands, and what those see who do not fit in.

#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/rendezvous.h"
#include "tests/tools/programs/run_program.h"

namespace baton::tools {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class ProgramSecurity : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string name = ::testing::TempDir() + "baton_certs_XXXXXX";
    certificates = new std::string(mkdtemp(name.data()));
    const Outcome made = RunProgram({"baton-certs", "--out=" + *certificates,
                                     "worker1", "worker2", "trainer"});
    ASSERT_EQ(made.code, 0) << made.output;
    EXPECT_THAT(made.output, HasSubstr("--tls_dir=" + *certificates));
  }
  static void TearDownTestSuite() {
    std::filesystem::remove_all(*certificates);
    delete certificates;
  }
  static std::string File(const std::string& name) {
    return absl::StrCat(*certificates, "/", name);
  }
  static std::string OtherToken() {
    std::string path = File("other_token");
    std::ofstream(path) << std::string(64, '0');
    chmod(path.c_str(), 0600);
    return path;
  }
  // Where nobody listens any more.
  static std::string FreePlace() {
    return (*rpc::RendezvousServer::Make("127.0.0.1:0"))->address();
  }
  static std::string Dir() { return "--tls_dir=" + *certificates; }

  static std::string* certificates;
};
std::string* ProgramSecurity::certificates = nullptr;

// One line, that code, and that it says so.
void ExpectOneLine(const Outcome& outcome, int code, const std::string& text) {
  EXPECT_EQ(outcome.code, code) << outcome.output;
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1)
      << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr(text));
}

TEST_F(ProgramSecurity, CertsKeepsKeysToTheUserAndTheAuthorityForLater) {
  struct stat info;
  for (const char* name : {"ca.key", "token", "worker1.key", "trainer.key",
                           "rendezvous.key", "batonctl.key"}) {
    ASSERT_EQ(stat(File(name).c_str(), &info), 0) << name;
    EXPECT_EQ(info.st_mode & 0777, 0600u) << name;
  }
  const auto read = [](const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  const std::string authority = read(File("ca.pem"));
  const std::string token = read(File("token"));
  ASSERT_EQ(
      RunProgram({"baton-certs", "--out=" + *certificates, "worker9"}).code, 0);
  EXPECT_EQ(read(File("ca.pem")), authority);
  EXPECT_EQ(read(File("token")), token);
  EXPECT_EQ(stat(File("worker9.pem").c_str(), &info), 0);
}

TEST_F(ProgramSecurity, CertsSaysWhatIsWrong) {
  EXPECT_EQ(RunProgram({"baton-certs", "worker1"}).code, 2);
  EXPECT_EQ(RunProgram({"baton-certs", "--out=" + *certificates}).code, 2);
  ExpectOneLine(
      RunProgram({"baton-certs", "--out=" + *certificates, "../worker"}), 2,
      "../worker");
  ExpectOneLine(RunProgram({"baton-certs", "--out=/no/such/folder", "a"}), 1,
                "/no/such/folder");
}

TEST_F(ProgramSecurity, RunTrainsOverTls) {
  const Outcome outcome = RunProgram({"baton-run", Dir(), "--workers=2",
                                      "--worker_program=toy_model", "--",
                                      "toy_model", "--steps=3"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, ContainsRegex("step 3: loss 0\\.[0-9]+"));
}

TEST_F(ProgramSecurity, ListeningBeyondThisMachineWantsTlsOrAWord) {
  const auto worker = [](std::vector<std::string> flags) {
    flags.insert(flags.begin(),
                 {"baton-worker", "--name=worker1", "--rendezvous=127.0.0.1:1",
                  "--world_size=2", "--join_timeout=300ms"});
    return RunProgram(flags);
  };
  for (const char* flag : {"--listen=0.0.0.0:0", "--advertise_host=10.1.1.1"}) {
    ExpectOneLine(worker({flag}), 2, "beyond this machine");
    // With either of these it comes as far as the rendezvous.
    ExpectOneLine(worker({flag, "--insecure"}), 1, "nobody answers there");
    ExpectOneLine(worker({flag, Dir()}), 1, "nobody answers there");
  }
  ExpectOneLine(RunProgram({"baton-run", "--rendezvous_listen=0.0.0.0:0",
                            "--workers=1", "--", "true"}),
                2, "the rendezvous would listen on 0.0.0.0:0");
  ExpectOneLine(worker({"--insecure", Dir()}), 2, "exclude each other");
}

TEST_F(ProgramSecurity, FilesThatDoNotFitAreNamedWithTheRemedy) {
  const auto worker = [](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"baton-worker", "--rendezvous=127.0.0.1:1",
                                 "--world_size=2"});
    return RunProgram(flags);
  };
  ExpectOneLine(worker({"--name=worker7", Dir()}), 1,
                File("worker7.pem") + ": cannot be read");
  ExpectOneLine(
      worker({"--name=worker1", Dir(), "--tls_cert=" + File("worker2.pem"),
              "--tls_key=" + File("worker2.key")}),
      1, "is for worker2, not for worker1");
  ExpectOneLine(worker({"--name=worker1", "--tls_cert=" + File("worker1.pem")}),
                2, "--tls_ca together");
  const std::string open = File("open_token");
  std::filesystem::copy_file(File("token"), open);
  chmod(open.c_str(), 0644);
  ExpectOneLine(worker({"--name=worker1", "--cluster_token_file=" + open}), 1,
                "chmod 600 " + open);
}

// Gives batonctl's outcomes for several flags, asked of a running worker.
TEST_F(ProgramSecurity, BatonctlNeedsWhatTheWorkersHave) {
  const std::string place = FreePlace();
  const std::string name = "worker1=" + place;
  std::vector<Outcome> outcomes;
  const Outcome worker = RunProgram(
      {"baton-worker", "--name=worker1", "--peers=" + name, "--log=info",
       Dir()},
      [&](const std::string& output, const Process& process) {
        if (!outcomes.empty() ||
            output.find("serving at") == std::string::npos) {
          return;
        }
        const auto ask = [&](std::vector<std::string> flags) {
          flags.insert(flags.begin(),
                       {"batonctl", "status", "--worker=" + name});
          outcomes.push_back(RunProgram(flags));
        };
        ask({Dir(), "--timeout=30s"});
        ask({"--timeout=1s"});  // whom nobody answers
        ask({Dir(), "--timeout=30s", "--cluster_token_file=" + OtherToken()});
        SendSignal(process, SIGTERM);
      });
  EXPECT_EQ(worker.code, 0) << worker.output;
  ASSERT_EQ(outcomes.size(), 3u) << worker.output;
  EXPECT_EQ(outcomes[0].code, 0) << outcomes[0].output;
  EXPECT_THAT(outcomes[0].output, HasSubstr("worker1     0  cpu      idle"));
  ExpectOneLine(outcomes[1], 1, "worker worker1 at " + place);
  ExpectOneLine(outcomes[2], 1, "--cluster_token_file");
}

}  // namespace
}  // namespace baton::tools
