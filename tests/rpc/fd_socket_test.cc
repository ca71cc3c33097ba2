// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/fd_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "rpc/transports/private_socket.h"

namespace baton::rpc {
namespace {

TEST(FdSocket, TellsConnectionsApartByTheirKeys) {
  const auto socket = PrivateSocket::Make();
  ASSERT_TRUE(socket.ok());
  const auto listener = FdListener::Make(socket->fd_path());
  ASSERT_TRUE(listener.ok()) << listener.status();
  auto one = FdConnection::Dial(socket->fd_path(), "one");
  auto two = FdConnection::Dial(socket->fd_path(), "two");
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_FALSE((*listener)->Accept("three").ok());
  auto got = (*listener)->Accept("two");
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_FALSE((*listener)->Accept("two").ok());
  EXPECT_FALSE(got->Receive().ok());
  const Fd sent(memfd_create("sent", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(sent.get(), 123), 0);
  ASSERT_TRUE(two->Send(sent).ok());
  const auto fd = got->Receive();
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_EQ(lseek(fd->get(), 0, SEEK_END), 123);
  EXPECT_TRUE((*listener)->Accept("one").ok());
}

// The room for one descriptor has padding, in which a second one fits.
TEST(FdSocket, DescriptorsThatCameInPairsAreRefusedAndClosed) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const Fd hostile(ends[0]);
  FdConnection connection{Fd(ends[1])};
  int pipes[2];
  ASSERT_EQ(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
  const Fd reading(pipes[0]);
  Fd writing(pipes[1]);
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char ancillary[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof(ancillary);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(2 * sizeof(int));
  const int both[2] = {writing.get(), writing.get()};
  std::memcpy(CMSG_DATA(header), both, sizeof(both));
  ASSERT_EQ(sendmsg(hostile.get(), &message, 0), 1);
  writing = Fd();
  EXPECT_EQ(read(reading.get(), &byte, 1), -1);  // others can write still
  EXPECT_EQ(connection.Receive().status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(read(reading.get(), &byte, 1), 0);  // nobody can
}

// A reader that takes nothing must not hold up a writer.
TEST(FdSocket, ASocketThatIsFullRefusesMore) {
  const auto socket = PrivateSocket::Make();
  const auto listener = FdListener::Make(socket->fd_path());
  auto connection = FdConnection::Dial(socket->fd_path(), "k");
  ASSERT_TRUE(connection.ok());
  const Fd fd(memfd_create("sent", MFD_CLOEXEC));
  absl::Status status;
  for (int i = 0; i < 100000 && status.ok(); ++i) status = connection->Send(fd);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace baton::rpc
