// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/view/prometheus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <future>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "rpc/histogram.h"
#include "tests/support/status_matchers.h"
#include "tools/view/metrics_server.h"

namespace baton::tools {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;

// What a scraper makes of a text, and what is wrong with it by the rules of
// format 0.0.4 and Prometheus' conventions for names.
struct Scrape {
  std::map<std::string, std::string> types;  // by family
  std::map<std::string, double> samples;     // by name and labels
  std::vector<std::string> wrong;
};

std::string FamilyOf(const std::string& name,
                     const std::map<std::string, std::string>& types) {
  for (const std::string end : {"_bucket", "_sum", "_count"}) {
    if (name.size() <= end.size() || !name.ends_with(end)) continue;
    const std::string base = name.substr(0, name.size() - end.size());
    auto found = types.find(base);
    if (found != types.end() && found->second == "histogram") return base;
  }
  return name;
}

void CheckFamily(Scrape& scrape, const std::string& name,
                 const std::string& type) {
  const auto complain = [&](const char* what) {
    scrape.wrong.push_back(name + ": " + what);
  };
  if (!scrape.types.emplace(name, type).second) complain("described twice");
  if ((type == "counter") != name.ends_with("_total"))
    complain("counters, and nothing else, end in _total");
  static const std::set<std::string> kTypes = {"counter", "gauge", "histogram"};
  if (!kTypes.contains(type)) complain("unknown type");
  if (name.find("_ms") != std::string::npos ||
      name.find("_us") != std::string::npos)
    complain("not in a base unit");
}

Scrape Parse(const std::string& text) {
  static const std::regex kHelp("# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)");
  static const std::regex kType("# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) ([a-z]+)");
  static const std::regex kSample(
      R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_]\w*="(?:[^"\\]|\\[\\"n])*",?)+\})? (\S+))re");
  Scrape scrape;
  std::set<std::string> ended;
  std::string line, family;
  std::istringstream lines(text);
  if (text.empty() || text.back() != '\n')
    scrape.wrong.push_back("no line feed at the end");
  while (std::getline(lines, line)) {
    std::smatch match;
    if (std::regex_match(line, match, kHelp)) {
      ended.insert(family);
      family = match[1];
      if (ended.contains(family)) scrape.wrong.push_back(line);
    } else if (std::regex_match(line, match, kType)) {
      CheckFamily(scrape, match[1], match[2]);
      if (match[1] != family) scrape.wrong.push_back(line);
    } else if (std::regex_match(line, match, kSample)) {
      if (FamilyOf(match[1], scrape.types) != family)
        scrape.wrong.push_back("not in its family: " + line);
      const std::string key = match[1].str() + match[2].str();
      if (!scrape.samples.emplace(key, std::stod(match[3])).second)
        scrape.wrong.push_back("twice: " + line);
    } else {
      scrape.wrong.push_back("no line of the format: " + line);
    }
  }
  return scrape;
}

rpc::DebugInfo Sample() {
  rpc::DebugInfo info;
  info.self = {"bob", rpc::Rank{1}, 7, "127.0.0.1:1"};
  info.uptime_ms = 1500;
  rpc::MethodStats stats;
  for (const uint64_t us : {5, 100, 100, 5'000, 90'000'000})
    rpc::CountIn(stats.latency, us);
  stats.peer = "alice";
  stats.method = "Stage<\"x\">::Run";
  stats.calls = 5;
  stats.failed = 1;
  stats.bytes_sent = 700;
  stats.total_us = 90'005'205;
  info.methods = {stats, stats};
  info.methods[1].incoming = true;
  info.objects.resize(3);
  info.objects[0].bytes = 100;
  info.objects[2].bytes = 11;
  info.incoming = {{"alice", "F", 2500}, {"alice", "G", 10}};
  info.channels.resize(1);
  info.channels[0].peer = "alice";
  info.channels[0].name = "grpc";
  info.channels[0].up = true;
  info.tensor_channels.resize(2);
  rpc::TensorChannelInfo& shared = info.tensor_channels[0];
  shared = {{.bytes_sent = 4096,
             .sent_in_place = 5,
             .declined = 2,
             .leases = 3,
             .made_bytes = 77},
            {.tensors_received = 6}};
  shared.peer = "alice";
  shared.name = "shared memory";
  shared.open = true;
  info.tensor_channels[1].peer = "carol";
  info.tensor_channels[1].name = "shared memory";
  info.tensor_channels[1].why_not = "it is on another machine";
  info.views = {{.name = "contexts",
                 .columns = {{"creator", rpc::View::Unit::kText},
                             {"gradient_bytes", rpc::View::Unit::kBytes}},
                 .rows = {{"a", "10"}, {"b", "32"}}}};
  return info;
}

TEST(Prometheus, TheTextKeepsToTheFormat) {
  for (const rpc::DebugInfo& info : {Sample(), rpc::DebugInfo()}) {
    const Scrape scrape = Parse(PrometheusText(info, {}));
    EXPECT_THAT(scrape.wrong, ::testing::IsEmpty());
    EXPECT_THAT(scrape.types, Contains(Key("baton_calls_total")));
  }
}

TEST(Prometheus, ValuesAreThose) {
  const auto samples =
      Parse(PrometheusText(Sample(), {.open_files = 9})).samples;
  const std::string out =
      R"({direction="out",peer="alice",method="Stage<\"x\">::Run"})";
  EXPECT_EQ(samples.at("baton_calls_total" + out), 5);
  EXPECT_EQ(samples.at("baton_calls_failed_total" + out), 1);
  EXPECT_EQ(samples.at("baton_call_sent_bytes_total" + out), 700);
  EXPECT_EQ(samples.at("baton_call_duration_seconds_count" + out), 5);
  EXPECT_NEAR(samples.at("baton_call_duration_seconds_sum" + out), 90.005205,
              1e-3);
  EXPECT_EQ(samples.at("baton_objects"), 3);
  EXPECT_EQ(samples.at("baton_object_bytes"), 111);
  EXPECT_EQ(samples.at("baton_uptime_seconds"), 1.5);
  EXPECT_EQ(samples.at("baton_calls_in_flight{direction=\"in\"}"), 2);
  EXPECT_EQ(samples.at("baton_oldest_call_age_seconds{direction=\"in\"}"), 2.5);
  EXPECT_EQ(samples.at("baton_channel_up{peer=\"alice\",channel=\"grpc\"}"), 1);
  const std::string shared = R"({peer="alice",channel="shared memory"})";
  EXPECT_EQ(samples.at("baton_tensor_channel_sent_bytes_total" + shared), 4096);
  EXPECT_EQ(samples.at("baton_tensor_channel_received_tensors_total" + shared),
            6);
  EXPECT_EQ(samples.at("baton_tensor_channel_declined_total" + shared), 2);
  EXPECT_EQ(samples.at("baton_tensor_channel_leases" + shared), 3);
  EXPECT_EQ(samples.at("baton_tensor_channel_in_place_tensors_total" + shared),
            5);
  EXPECT_EQ(samples.at("baton_tensor_channel_made_bytes" + shared), 77);
  EXPECT_EQ(samples.at(R"(baton_tensor_channel_open{peer="alice",)"
                       R"(channel="shared memory",state="open",reason=""})"),
            1);
  EXPECT_EQ(samples.at(R"(baton_tensor_channel_open{peer="carol",)"
                       R"(channel="shared memory",state="not open",)"
                       R"(reason="it is on another machine"})"),
            0);
  EXPECT_EQ(samples.at("baton_view_rows{view=\"contexts\"}"), 2);
  EXPECT_EQ(samples.at("baton_view_bytes{view=\"contexts\",column=\"gradient_"
                       "bytes\"}"),
            42);
  EXPECT_EQ(samples.at("process_open_fds"), 9);
}

TEST(Prometheus, BucketsGrowToTheCount) {
  const auto samples = Parse(PrometheusText(Sample(), {})).samples;
  std::map<double, double> buckets;
  for (const auto& [key, value] : samples) {
    const size_t le = key.find("le=\"");
    if (le == std::string::npos || key.find("\"out\"") == std::string::npos)
      continue;
    buckets[std::stod(key.substr(le + 4))] = value;  // +Inf is read too
  }
  ASSERT_GT(buckets.size(), 10u);
  double last = 0;
  for (const auto& [bound, count] : buckets) {
    EXPECT_GE(count, last);
    last = count;
  }
  EXPECT_EQ(buckets.at(8e-6), 1);
  EXPECT_EQ(buckets.at(128e-6), 3);
  EXPECT_EQ(buckets.at(0.008192), 4);
  EXPECT_EQ(std::prev(buckets.end(), 2)->second, 4);
  EXPECT_EQ(buckets.rbegin()->second, 5);
}

TEST(Prometheus, TheProcessIsMeasured) {
  const ProcessUse use = UseOfThisProcess();
  EXPECT_GT(use.resident_bytes, 1'000'000);
  EXPECT_GE(use.open_files, 3);
}

std::string Nothing() { return ""; }

int PortOf(const MetricsPort& port) {
  const std::string address = port.address();
  return std::stoi(address.substr(address.find(':') + 1));
}

class MetricsServerTest : public ::testing::Test {
 protected:
  MetricsServerTest() {
    auto port = MetricsPort::Make("127.0.0.1", 0);
    EXPECT_THAT(port, testing::IsOk());
    port_ = PortOf(**port);
    server_ = (*port)->Serve([this] {
      ++asked_;
      return std::string("baton_info 1\n");
    });
  }
  std::atomic<int> asked_{0};
  std::unique_ptr<MetricsServer> server_;
  int port_ = 0;
};

TEST_F(MetricsServerTest, ServesTheTextWithItsType) {
  httplib::Client client("127.0.0.1", port_);
  const auto response = client.Get("/metrics");
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "baton_info 1\n");
  EXPECT_EQ(response->get_header_value("Content-Type"),
            "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(asked_, 1);
}

TEST_F(MetricsServerTest, ServesNothingElse) {
  httplib::Client client("127.0.0.1", port_);
  EXPECT_EQ(client.Get("/")->status, 404);
  EXPECT_EQ(client.Get("/../etc/passwd")->status, 404);
  EXPECT_NE(client.Post("/metrics", "x", "text/plain")->status, 200);
  EXPECT_EQ(asked_, 0);
}

TEST_F(MetricsServerTest, APortThatIsTakenIsNamed) {
  EXPECT_THAT(MetricsPort::Make("127.0.0.1", port_),
              testing::Fails(absl::StatusCode::kUnavailable,
                             absl::StrCat("127.0.0.1:", port_)));
}

TEST(MetricsPortTest, IsTakenBeforeItServesAndFreeAfterwards) {
  auto port = MetricsPort::Make("127.0.0.1", 0);
  ASSERT_THAT(port, testing::IsOk());
  const int number = PortOf(**port);
  EXPECT_THAT(MetricsPort::Make("127.0.0.1", number),
              testing::Fails(absl::StatusCode::kUnavailable, "taken"));
  port->reset();
  port = MetricsPort::Make("127.0.0.1", number);
  ASSERT_THAT(port, testing::IsOk());
  const auto server = (*port)->Serve(&Nothing);
  EXPECT_EQ(httplib::Client("127.0.0.1", number).Get("/metrics")->status, 200);
}

// They wait in the kernel.
TEST(MetricsPortTest, AnswersThoseWhoCameBeforeItServed) {
  const auto port = MetricsPort::Make("127.0.0.1", 0);
  ASSERT_THAT(port, testing::IsOk());
  auto asked = std::async(std::launch::async, [number = PortOf(**port)] {
    httplib::Client client("127.0.0.1", number);
    const auto response = client.Get("/metrics");
    return response ? response->status : 0;
  });
  const auto server = (*port)->Serve(&Nothing);
  EXPECT_EQ(asked.get(), 200);
}

TEST_F(MetricsServerTest, EndsWithAConnectionOpen) {
  httplib::Client client("127.0.0.1", port_);
  client.set_keep_alive(true);
  ASSERT_TRUE(client.Get("/metrics"));
  server_.reset();
  EXPECT_FALSE(client.Get("/metrics"));
}

}  // namespace
}  // namespace baton::tools
