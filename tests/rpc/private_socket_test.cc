// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/private_socket.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace baton::rpc {
namespace {

namespace fs = std::filesystem;

class PrivateSocketTest : public ::testing::Test {
 protected:
  PrivateSocketTest() {
    std::string base = ::testing::TempDir() + "/socketsXXXXXX";
    base_ = mkdtemp(base.data());
    if (const char* old = std::getenv("TMPDIR")) old_ = old;
    setenv("TMPDIR", base_.c_str(), 1);
  }
  ~PrivateSocketTest() override {
    old_.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", old_.c_str(), 1);
    fs::remove_all(base_);
  }
  // As a killed process leaves it.
  fs::path Abandoned(const std::string& name) {
    const fs::path directory = base_ / name;
    fs::create_directory(directory);
    for (const char* file : {"lock", "s"}) std::ofstream(directory / file);
    return directory;
  }
  fs::path base_;
  std::string old_;
};

TEST_F(PrivateSocketTest, IsForThisUserOnlyAndGoesWithItsObject) {
  auto socket = PrivateSocket::Make();
  ASSERT_TRUE(socket.ok()) << socket.status();
  const fs::path directory = fs::path(socket->path()).parent_path();
  EXPECT_EQ(directory.parent_path(), base_);
  EXPECT_EQ(fs::status(directory).permissions(), fs::perms::owner_all);
  PrivateSocket other = *std::move(socket);
  EXPECT_TRUE(fs::exists(directory));
  other = PrivateSocket();
  EXPECT_TRUE(fs::is_empty(base_));
}

TEST_F(PrivateSocketTest, TellsOfWorkersForAsLongAsTheyLive) {
  auto silent = PrivateSocket::Make();
  auto alice = PrivateSocket::Make();
  auto bob = PrivateSocket::Make();
  ASSERT_TRUE(silent.ok() && alice.ok() && bob.ok());
  bob->Announce({"second", "bob", "10.0.0.2:2"});
  alice->Announce({"first", "alice", "unix:/tmp/x"});
  std::vector<LocalWorker> workers = LocalWorkers();
  ASSERT_EQ(workers.size(), 2u);
  EXPECT_EQ(workers[0].name + " " + workers[1].name, "alice bob");
  EXPECT_EQ(workers[0].address, "unix:/tmp/x");
  EXPECT_EQ(workers[1].cluster, "second");
  *alice = PrivateSocket();
  EXPECT_EQ(LocalWorkers().size(), 1u);
  // A killed one has left its directory, and nobody holds the lock.
  std::ofstream(Abandoned("baton-d1e2f3") / "worker") << "eve\n10.0.0.3:3\nc";
  EXPECT_EQ(LocalWorkers().size(), 1u);
  EXPECT_FALSE(fs::exists(base_ / "baton-d1e2f3"));
}

TEST_F(PrivateSocketTest, RemovesWhatKilledProcessesLeft) {
  const fs::path dead = Abandoned("baton-a1b2c3");
  auto socket = PrivateSocket::Make();
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_FALSE(fs::exists(dead));
}

TEST_F(PrivateSocketTest, ManyStartAtOnceWithoutTakingEachOthers) {
  std::atomic<int> broken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&broken] {
      for (int k = 0; k < 200; ++k) {
        auto socket = PrivateSocket::Make();
        const bool whole =
            socket.ok() && fs::exists(fs::path(socket->path()).parent_path());
        if (!whole) ++broken;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(broken, 0);
}

TEST_F(PrivateSocketTest, KeepsFoldersThatAreInUseOrNotItsOwn) {
  auto alive = PrivateSocket::Make();
  ASSERT_TRUE(alive.ok()) << alive.status();
  const fs::path other = Abandoned("baton-of-another-kind");
  const fs::path newborn = base_ / "baton-zzzzzz";
  fs::create_directory(newborn);
  auto socket = PrivateSocket::Make();
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_TRUE(fs::exists(fs::path(alive->path()).parent_path()));
  EXPECT_TRUE(fs::exists(other / "s"));
  EXPECT_TRUE(fs::exists(newborn));
}

TEST_F(PrivateSocketTest, FailsInOneLineWhereItCannotBeMade) {
  setenv("TMPDIR", (base_ / "missing").c_str(), 1);
  const auto socket = PrivateSocket::Make();
  EXPECT_EQ(socket.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(socket.status().message().find("missing/baton-"), std::string::npos)
      << socket.status();
}

}  // namespace
}  // namespace baton::rpc
