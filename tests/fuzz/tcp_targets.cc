// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "rpc/channels/segment.h"
#include "rpc/channels/tcp_socket.h"
#include "rpc/channels/tcp_tensors.h"
#include "rpc/wire.pb.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

// Tickets of a channel by TCP, and what comes by its socket, in any pieces.
namespace baton::fuzz {
namespace {

// A peer who writes as it likes, and what is made of that.
struct Meeting {
  Meeting() {
    int ends[2];
    BATON_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    here = rpc::TcpStream::Clear(rpc::Fd(ends[0]));
    there = rpc::Fd(ends[1]);
  }

  // False where the ticket is refused.
  bool Import(Input& input) {
    const auto count = static_cast<int64_t>(input.Byte());
    const rpc::TensorSpec spec{.shape = Shape({count}),
                               .bytes = static_cast<uint64_t>(count) * 4};
    rpc::wire::TcpTicket ticket;
    if (!ticket.ParseFromString(input.Chunk())) return false;
    auto imported = receipts.Import(spec, ticket.lease(), ticket.bytes());
    if (!imported.ok()) return false;
    BATON_CHECK(imported->tensor.nbytes() == spec.bytes && spec.bytes > 0);
    awaited.push_back(imported->given);
    return true;
  }
  // False when nothing more will be read.
  bool Write(const std::string& bytes) {
    const ssize_t sent = send(there.get(), bytes.data(), bytes.size(),
                              MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent == static_cast<ssize_t>(bytes.size()) && Read();
  }
  bool Read() {
    for (;;) {
      auto read = receipts.ReadFrom(*here);
      if (!read.ok()) return false;
      if (read->came.has_value()) {
        BATON_CHECK(read->came->Set(absl::OkStatus()));
        ++came;
      }
      if (read->empty || read->unasked) return true;
    }
  }

  std::shared_ptr<rpc::TcpStream> here;
  rpc::Fd there;
  rpc::TcpReceipts receipts;
  std::vector<Future<void>> awaited;
  uint64_t came = 0;
};

}  // namespace

bool Tcp(const std::string& bytes) {
  Input input(bytes);
  Meeting meeting;
  bool taken = true, open = true;
  for (int steps = 0; open && !input.empty() && steps < 200; ++steps) {
    if (input.Byte() % 2 == 0) {
      taken &= meeting.Import(input);
      open = meeting.Read();
    } else {
      open = meeting.Write(input.Chunk());
    }
  }
  BATON_CHECK(meeting.receipts.counts().tensors_received == meeting.came);
  meeting.receipts.Lose();
  for (const auto& each : meeting.awaited) BATON_CHECK(each.ready());
  BATON_CHECK(!meeting.Read());
  return taken && open;
}

}  // namespace baton::fuzz
