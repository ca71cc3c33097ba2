// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/view/metrics_server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace baton::tools {
namespace {

constexpr char kFormat[] = "text/plain; version=0.0.4; charset=utf-8";

class HttpMetricsServer final : public MetricsServer {
 public:
  explicit HttpMetricsServer(std::function<std::string()> text)
      : text_(std::move(text)) {
    // A scraper or two at a time; who is slow holds up nobody else's work.
    server_.new_task_queue = [] { return new httplib::ThreadPool(2); };
    server_.set_payload_max_length(1024);
    // Its own choice shares a port with whoever has it already.
    server_.set_socket_options([](int socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    server_.set_read_timeout(5);
    server_.set_write_timeout(5);
    server_.set_keep_alive_timeout(1);
    server_.Get("/metrics",
                [this](const httplib::Request&, httplib::Response& response) {
                  response.set_content(text_(), kFormat);
                });
  }
  ~HttpMetricsServer() override {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Listen(const std::string& host, int port) {
    const int wanted = port;
    if (port == 0) {
      port = server_.bind_to_any_port(host.c_str());
    } else if (!server_.bind_to_port(host.c_str(), port)) {
      port = -1;
    }
    address_ = absl::StrCat(host, ":", port);
    if (port < 0) {
      return absl::UnavailableError(absl::StrCat(
          "cannot serve metrics at ", host, ":", wanted,
          ": the host is no address of this machine, or the port "
          "is taken; choose another --metrics_port, or 0 for any"));
    }
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    // A stop before it listens would be lost.
    while (!server_.is_running()) std::this_thread::yield();
    return absl::OkStatus();
  }
  std::string address() const override { return address_; }

 private:
  const std::function<std::string()> text_;
  httplib::Server server_;
  std::string address_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Make(
    const std::string& host, int port, std::function<std::string()> text) {
  auto server = std::make_unique<HttpMetricsServer>(std::move(text));
  if (absl::Status status = server->Listen(host, port); !status.ok())
    return status;
  return server;
}

}  // namespace baton::tools
