// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/tcp_stream.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace baton::rpc {
namespace {

class ClearStream final : public TcpStream {
 public:
  explicit ClearStream(Fd socket) : TcpStream(std::move(socket)) {}

  absl::Status Handshake() override { return absl::OkStatus(); }

  absl::StatusOr<size_t> Write(std::span<const iovec> parts) override {
    msghdr message = MessageOf(parts);
    return Moved(
        "cannot write to the socket",
        sendmsg(socket().get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  absl::StatusOr<size_t> Read(std::span<const iovec> parts) override {
    msghdr message = MessageOf(parts);
    const ssize_t got = recvmsg(socket().get(), &message, MSG_DONTWAIT);
    if (got == 0) return absl::UnavailableError("it closed the socket");
    return Moved("cannot read from the socket", got);
  }

 private:
  static msghdr MessageOf(std::span<const iovec> parts) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts.data());
    message.msg_iovlen = parts.size();
    return message;
  }
  // Returns how many bytes a call with this `result` has moved.
  static absl::StatusOr<size_t> Moved(const char* what, ssize_t result) {
    if (result >= 0) return static_cast<size_t>(result);
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
      return size_t{0};
    return absl::UnavailableError(absl::StrCat(what, ": ", strerror(errno)));
  }
};

}  // namespace

std::shared_ptr<TcpStream> TcpStream::Clear(Fd socket) {
  return std::make_shared<ClearStream>(std::move(socket));
}

}  // namespace baton::rpc
