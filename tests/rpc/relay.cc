// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/relay.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace baton::testing {
namespace {

sockaddr_in Here(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int PortOf(const std::string& address) {
  return std::stoi(address.substr(address.rfind(':') + 1));
}

}  // namespace

Relay::Relay(const std::string& server) : server_port_(PortOf(server)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in here = Here(0);
  socklen_t size = sizeof here;
  auto* address = reinterpret_cast<sockaddr*>(&here);
  EXPECT_EQ(bind(listener_, address, size), 0);
  EXPECT_EQ(listen(listener_, 16), 0);
  EXPECT_EQ(getsockname(listener_, address, &size), 0);
  address_ = absl::StrCat("127.0.0.1:", ntohs(here.sin_port));
  accepting_ = std::thread([this] { Accept(); });
}

Relay::~Relay() {
  shutdown(listener_, SHUT_RDWR);
  accepting_.join();
  close(listener_);
  std::vector<std::thread> carriers;
  {
    MutexLock lock(mutex_);
    for (int socket : sockets_) shutdown(socket, SHUT_RDWR);
    carriers.swap(carriers_);
  }
  for (std::thread& carrier : carriers) carrier.join();
  MutexLock lock(mutex_);
  for (int socket : sockets_) close(socket);
}

void Relay::Cut() {
  MutexLock lock(mutex_);
  cut_ = true;
  ++life_;
}

void Relay::Mend() {
  MutexLock lock(mutex_);
  cut_ = false;
  ++life_;
}

bool Relay::Works(int life) {
  MutexLock lock(mutex_);
  return !cut_ && life_ == life;
}

void Relay::Accept() {
  for (;;) {
    const int near = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (near < 0) return;
    const int far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in server = Here(server_port_);
    const bool there = connect(far, reinterpret_cast<const sockaddr*>(&server),
                               sizeof server) == 0;
    MutexLock lock(mutex_);
    sockets_.push_back(near);
    sockets_.push_back(far);
    if (!there) {
      shutdown(near, SHUT_RDWR);
      continue;
    }
    const int life = life_;
    carriers_.emplace_back([this, near, far, life] { Carry(near, far, life); });
    carriers_.emplace_back([this, near, far, life] { Carry(far, near, life); });
  }
}

void Relay::Carry(int from, int to, int life) {
  char bytes[4096];
  for (;;) {
    const ssize_t read = recv(from, bytes, sizeof bytes, 0);
    if (read <= 0) break;
    for (ssize_t at = 0; Works(life) && at < read;) {
      const ssize_t sent =
          send(to, bytes + at, static_cast<size_t>(read - at), MSG_NOSIGNAL);
      if (sent <= 0) return;
      at += sent;
    }
  }
  if (Works(life)) shutdown(to, SHUT_RDWR);
}

}  // namespace baton::testing
