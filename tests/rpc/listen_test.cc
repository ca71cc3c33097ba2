// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What is said of a socket that cannot be listened on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "rpc/transports/address.h"
#include "rpc/transports/grpc.h"
#include "tests/support/status_matchers.h"

namespace baton::rpc {
namespace {

using absl::StatusCode;
using baton::testing::Fails;
using baton::testing::IsOk;

class ListenTest : public ::testing::Test {
 protected:
  ListenTest() {
    std::string name = ::testing::TempDir() + "baton_listen_XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~ListenTest() override { std::filesystem::remove_all(folder_); }
  std::string Place(const std::string& name) const {
    return absl::StrCat("unix:", folder_, "/", name);
  }
  std::string folder_;
};

TEST_F(ListenTest, AFolderThatIsNotThereIsTheReason) {
  EXPECT_THAT(CheckListen(Place("none/s")),
              Fails(StatusCode::kUnavailable,
                    "none/s: its folder: No such file or directory"));
}

TEST_F(ListenTest, APathThatIsTooLongIsTheReason) {
  EXPECT_THAT(CheckListen(Place(std::string(200, 'a'))),
              Fails(StatusCode::kUnavailable, "107 characters at most"));
}

// From the block for documents: no machine has it.
TEST_F(ListenTest, AnAddressOfNoInterfaceIsTheReason) {
  EXPECT_THAT(CheckListen("192.0.2.1:0"),
              Fails(StatusCode::kUnavailable,
                    "cannot listen on 192.0.2.1:0: this machine has no such "
                    "address; give one that `ip address` shows"));
}

TEST_F(ListenTest, AFileIsNotTakenOver) {
  std::ofstream(folder_ + "/file") << "mine";
  EXPECT_THAT(CheckListen(Place("file")),
              Fails(StatusCode::kUnavailable, "no socket"));
}

TEST_F(ListenTest, ALiveWorkersSocketIsNotTakenOver) {
  const auto first = MakeGrpcTransport({.listen = Place("s")});
  ASSERT_THAT(first.status(), IsOk());
  EXPECT_THAT(MakeGrpcTransport({.listen = Place("s")}).status(),
              Fails(StatusCode::kUnavailable, "another process listens there"));
}

TEST_F(ListenTest, ADeadOnesIs) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (folder_ + "/s").copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(
      bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
      0);
  close(fd);
  EXPECT_THAT(MakeGrpcTransport({.listen = Place("s")}).status(), IsOk());
}

}  // namespace
}  // namespace baton::rpc
