// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rpc/transports/framing.h"
#include "rpc/transports/hello.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace baton::rpc {

// Says what it likes on a stream, and hears how that ends.
class RawClient {
 public:
  explicit RawClient(const std::string& target);
  // On a connection that others may have streams on as well.
  explicit RawClient(std::shared_ptr<grpc::Channel> channel);
  ~RawClient();

  void Write(const grpc::ByteBuffer& frames);
  void WriteBytes(const std::string& bytes);
  // False when the other side has ended the stream.
  bool Read(grpc::ByteBuffer* frames);
  // The meta bytes of the next frame, which must be of that kind.
  absl::StatusOr<std::string> ReadMeta(FrameKind kind);
  absl::StatusOr<wire::HelloAnswer> ReadAnswer();

 private:
  struct Stream;
  const std::unique_ptr<Stream> stream_;
};

}  // namespace baton::rpc
