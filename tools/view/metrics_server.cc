// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/view/metrics_server.h"

#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace baton::tools {
namespace {

constexpr char kFormat[] = "text/plain; version=0.0.4; charset=utf-8";

class HttpMetricsServer final : public MetricsServer {
 public:
  HttpMetricsServer() {
    // One or two scrapers at a time are enough; a slow one delays no other
    // work.
    server_.new_task_queue = [] { return new httplib::ThreadPool(2); };
    server_.set_payload_max_length(1024);
    // The library's default would share a port that is already in use.
    server_.set_socket_options([this](int socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
      socket_ = socket;
    });
    server_.set_read_timeout(5);
    server_.set_write_timeout(5);
    server_.set_keep_alive_timeout(1);
  }
  ~HttpMetricsServer() override {
    if (thread_.joinable()) {
      server_.stop();
      thread_.join();
    } else if (bound_) {
      ::close(socket_);  // the library closes it if it serves
    }
  }

  // Binds the port and returns it; nullopt if that fails.
  std::optional<int> Bind(const std::string& host, int port) {
    if (port == 0) {
      port = server_.bind_to_any_port(host.c_str());
    } else if (!server_.bind_to_port(host.c_str(), port)) {
      port = -1;
    }
    bound_ = port > 0;
    return bound_ ? std::optional(port) : std::nullopt;
  }
  void Serve(std::function<std::string()> text) {
    server_.Get("/metrics",
                [text = std::move(text)](const httplib::Request&,
                                         httplib::Response& response) {
                  response.set_content(text(), kFormat);
                });
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    // A stop before the server listens would be lost.
    while (!server_.is_running()) std::this_thread::yield();
  }

 private:
  httplib::Server server_;
  int socket_ = -1;
  bool bound_ = false;
  std::thread thread_;
};

class HttpMetricsPort final : public MetricsPort {
 public:
  HttpMetricsPort(std::string address,
                  std::unique_ptr<HttpMetricsServer> server)
      : address_(std::move(address)), server_(std::move(server)) {}

  std::string address() const override { return address_; }
  std::unique_ptr<MetricsServer> Serve(
      std::function<std::string()> text) override {
    server_->Serve(std::move(text));
    return std::move(server_);
  }

 private:
  const std::string address_;
  std::unique_ptr<HttpMetricsServer> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsPort>> MetricsPort::Make(
    const std::string& host, int port) {
  auto server = std::make_unique<HttpMetricsServer>();
  const std::optional<int> bound = server->Bind(host, port);
  if (!bound.has_value()) {
    return absl::UnavailableError(absl::StrCat(
        "cannot serve metrics at ", host, ":", port,
        ": the host (--metrics_host) is no address of this machine, or the "
        "port is taken; choose another --metrics_port, or 0 for any"));
  }
  return std::make_unique<HttpMetricsPort>(absl::StrCat(host, ":", *bound),
                                           std::move(server));
}

}  // namespace baton::tools
