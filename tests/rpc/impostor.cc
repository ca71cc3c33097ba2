// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/impostor.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/mutex.h"
#include "rpc/call_proof.h"

namespace baton::rpc {

class Impostor::Server final : public grpc::CallbackGenericService {
 public:
  explicit Server(Script script) : script_(std::move(script)) {}
  ~Server() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  // The port, or 0.
  int Listen(const std::string& address) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
    return server_ == nullptr ? 0 : port;
  }

  bool HasHeard(const std::string& what) const {
    MutexLock lock(mutex_);
    for (const std::string& said : heard_) {
      if (absl::StrContains(said, what)) return true;
    }
    return false;
  }
  bool AwaitMessages(size_t count, std::chrono::seconds limit) const {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    MutexLock lock(mutex_);
    while (messages_ < count && changed_.WaitUntil(mutex_, deadline)) {
    }
    return messages_ >= count;
  }

 private:
  class Call;

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;
  Reply Hear(const Said& said) {
    Reply reply = script_(said);
    MutexLock lock(mutex_);
    heard_.push_back(said.bytes);
    ++messages_;
    changed_.NotifyAll();
    return reply;
  }

  const Script script_;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<std::string> heard_ ABSL_GUARDED_BY(mutex_);
  size_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t messages_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<grpc::Server> server_;
};

class Impostor::Server::Call final : public grpc::ServerGenericBidiReactor {
 public:
  Call(Server& server, size_t number,
       grpc::GenericCallbackServerContext* context)
      : server_(server), number_(number), context_(context) {
    StartRead(&in_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return End(absl::OkStatus());
    std::vector<grpc::Slice> slices;
    std::string said;
    if (in_.Dump(&slices).ok()) {
      for (const grpc::Slice& slice : slices)
        said.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    reply_ = server_.Hear({number_, said});
    if (!reply_.proof.empty())
      context_->AddTrailingMetadata(internal::kProofKey, reply_.proof);
    if (!reply_.message.empty() || (reply_.end && reply_.status.ok())) {
      const grpc::Slice slice(reply_.message);
      out_ = grpc::ByteBuffer(&slice, 1);
      StartWrite(&out_);
    } else {
      GoOn();
    }
  }
  void OnWriteDone(bool) override { GoOn(); }
  void OnDone() override { delete this; }

 private:
  void GoOn() {
    if (reply_.end) return End(reply_.status);
    StartRead(&in_);
  }
  void End(const absl::Status& status) {
    Finish({static_cast<grpc::StatusCode>(status.code()),
            std::string(status.message())});
  }

  Server& server_;
  const size_t number_;
  grpc::GenericCallbackServerContext* const context_;
  Reply reply_;
  grpc::ByteBuffer in_, out_;
};

grpc::ServerGenericBidiReactor* Impostor::Server::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  MutexLock lock(mutex_);
  for (const auto& [key, value] : context->client_metadata()) {
    heard_.emplace_back(key.data(), key.size());
    heard_.emplace_back(value.data(), value.size());
  }
  return new Call(*this, calls_++, context);
}

Impostor::Impostor(const std::string& address, Script script)
    : server_(std::make_unique<Server>(std::move(script))) {
  const int port = server_->Listen(address);
  EXPECT_NE(port, 0) << address;
  address_ = absl::StrCat(address.substr(0, address.rfind(':') + 1), port);
}

Impostor::~Impostor() = default;

bool Impostor::HasHeard(const std::string& what) const {
  return server_->HasHeard(what);
}

bool Impostor::AwaitMessages(size_t count, std::chrono::seconds limit) const {
  return server_->AwaitMessages(count, limit);
}

}  // namespace baton::rpc
