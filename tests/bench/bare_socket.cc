// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/bare_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "core/status.h"

namespace baton::bench {
namespace {

void WriteAll(int fd, const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = write(fd, data, bytes);
    if (n <= 0) std::_Exit(0);
    data += n;
    bytes -= static_cast<size_t>(n);
  }
}

void ReadAll(int fd, char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = read(fd, data, std::min(bytes, size_t{256} << 10));
    if (n <= 0) std::_Exit(0);
    data += n;
    bytes -= static_cast<size_t>(n);
  }
}

void MakeTcpPair(int ends[2]) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  BATON_CHECK(bind(listener, any, length) == 0 && listen(listener, 1) == 0);
  BATON_CHECK(getsockname(listener, any, &length) == 0);
  ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  BATON_CHECK(connect(ends[0], any, length) == 0);
  ends[1] = accept(listener, nullptr, nullptr);
  close(listener);
  const int on = 1;
  for (int i : {0, 1}) {
    setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
}

[[noreturn]] void Serve(int fd) {
  std::vector<char> buffer(size_t{64} << 20);
  for (;;) {
    char head[64];
    ReadAll(fd, head, sizeof(head));
    ReadAll(fd, buffer.data(), *reinterpret_cast<size_t*>(head));
    WriteAll(fd, head, sizeof(head));
  }
}

}  // namespace

BareSocket::BareSocket(bool tcp) {
  int ends[2];
  if (tcp) {
    MakeTcpPair(ends);
  } else {
    BATON_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  }
  const int size = tcp ? 256 << 10 : 4 << 20;
  for (int fd : ends) {
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
  }
  child_ = fork();
  if (child_ == 0) {
    close(ends[0]);
    Serve(ends[1]);
  }
  close(ends[1]);
  fd_ = ends[0];
}

BareSocket::~BareSocket() {
  close(fd_);
  waitpid(child_, nullptr, 0);
}

void BareSocket::Transfer(const std::vector<char>& data) {
  char head[64] = {};
  *reinterpret_cast<size_t*>(head) = data.size();
  WriteAll(fd_, head, sizeof(head));
  WriteAll(fd_, data.data(), data.size());
  ReadAll(fd_, head, sizeof(head));
}

}  // namespace baton::bench
