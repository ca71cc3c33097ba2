// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/raw_client.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/transports/grpc_stream.h"
#include "rpc/wire.pb.h"
#include "tests/rpc/transport_worker.h"

namespace baton::rpc {

struct RawClient::Stream {
  explicit Stream(std::shared_ptr<grpc::Channel> channel)
      : stub(std::move(channel)) {
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    call = stub.PrepareCall(&context, kStreamMethod, &queue);
    call->StartCall(nullptr);
    EXPECT_TRUE(Next());
  }
  ~Stream() {
    context.TryCancel();
    queue.Shutdown();
    void* tag;
    bool ok;
    while (queue.Next(&tag, &ok)) {
    }
  }
  bool Next() {
    void* tag;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  }

  grpc::GenericStub stub;
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;
};

namespace {

// Not shared with other streams, as workers do not.
std::shared_ptr<grpc::Channel> OwnChannel(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(),
                                   arguments);
}

}  // namespace

RawClient::RawClient(const std::string& target)
    : RawClient(OwnChannel(target)) {}

RawClient::RawClient(std::shared_ptr<grpc::Channel> channel)
    : stream_(std::make_unique<Stream>(std::move(channel))) {}

RawClient::~RawClient() = default;

void RawClient::Write(const grpc::ByteBuffer& frames) {
  stream_->call->Write(frames, nullptr);
  stream_->Next();
}

void RawClient::WriteBytes(const std::string& bytes) {
  grpc::Slice slice(bytes);
  Write(grpc::ByteBuffer(&slice, 1));
}

bool RawClient::Read(grpc::ByteBuffer* frames) {
  stream_->call->Read(frames, nullptr);
  return stream_->Next();
}

absl::StatusOr<std::string> RawClient::ReadMeta(FrameKind kind) {
  grpc::ByteBuffer frames;
  if (!Read(&frames)) return absl::UnavailableError("ended");
  FrameReader in(frames);
  ASSIGN_OR_RETURN(const FrameHeader header, in.ReadHeader());
  if (header.kind != kind) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame of kind ", static_cast<int>(header.kind)));
  }
  std::string meta(header.meta_bytes, '\0');
  in.Read(meta.data(), meta.size());
  return meta;
}

absl::StatusOr<wire::HelloAnswer> RawClient::ReadAnswer() {
  ASSIGN_OR_RETURN(const std::string meta, ReadMeta(FrameKind::kHelloAnswer));
  return ParseHelloAnswer(meta);
}

}  // namespace baton::rpc
