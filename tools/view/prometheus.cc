// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/view/prometheus.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/version.h"
#include "rpc/histogram.h"

namespace baton::tools {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

// The bounds of durations: 8 us to 33 s.
constexpr int kFirstBound = 3, kLastBound = 25;

class Exposition {
 public:
  // The samples of a name must directly follow its description.
  void Describe(const char* name, const char* type, const char* help) {
    absl::StrAppend(&text_, "# HELP ", name, " ", help, "\n# TYPE ", name, " ",
                    type, "\n");
  }
  template <typename Number>
  void Sample(const std::string& name, const Labels& labels, Number value) {
    text_ += name;
    const char* between = "{";
    for (const auto& [key, label] : labels) {
      absl::StrAppend(
          &text_, between, key, "=\"",
          absl::StrReplaceAll(label,
                              {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}),
          "\"");
      between = ",";
    }
    absl::StrAppend(&text_, labels.empty() ? "" : "}", " ", value, "\n");
  }
  template <typename Number>
  void Single(const char* name, const char* type, const char* help,
              Number value) {
    Describe(name, type, help);
    Sample(name, {}, value);
  }

  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

Labels LabelsOf(const rpc::MethodStats& stats) {
  return {{"direction", stats.incoming ? "in" : "out"},
          {"peer", stats.peer},
          {"method", stats.method}};
}

Labels LabelsOf(const rpc::ChannelInfo& channel) {
  return {{"peer", channel.peer}, {"channel", channel.name}};
}

Labels LabelsOf(const rpc::TensorChannelInfo& channel) {
  return {{"peer", channel.peer}, {"channel", channel.name}};
}

// One family of samples, one for each element of `all`.
template <typename T>
void Family(Exposition& out, const std::vector<T>& all, const char* name,
            const char* type, const char* help,
            const std::function<uint64_t(const T&)>& value) {
  out.Describe(name, type, help);
  for (const T& one : all) out.Sample(name, LabelsOf(one), value(one));
}

void AddDurations(Exposition& out, const std::vector<rpc::MethodStats>& all) {
  const std::string name = "baton_call_duration_seconds";
  out.Describe(name.c_str(), "histogram",
               "How long calls took: made here, from begin to answer; served "
               "here, from arrival to answer.");
  for (const rpc::MethodStats& stats : all) {
    Labels labels = LabelsOf(stats);
    labels.emplace_back("le", "");
    uint64_t below = 0, total = 0;
    size_t bucket = 0;
    for (const uint64_t count : stats.latency) total += count;
    for (int power = kFirstBound; power <= kLastBound; ++power) {
      const uint64_t bound = uint64_t{1} << power;
      while (bucket < stats.latency.size() &&
             rpc::BucketBegin(bucket + 1) <= bound) {
        below += stats.latency[bucket++];
      }
      labels.back().second = absl::StrCat(static_cast<double>(bound) / 1e6);
      out.Sample(name + "_bucket", labels, below);
    }
    labels.back().second = "+Inf";
    out.Sample(name + "_bucket", labels, total);
    labels.pop_back();
    out.Sample(name + "_sum", labels,
               static_cast<double>(stats.total_us) / 1e6);
    out.Sample(name + "_count", labels, total);
  }
}

void AddMethods(Exposition& out, const std::vector<rpc::MethodStats>& all) {
  using Stats = rpc::MethodStats;
  Family<Stats>(out, all, "baton_calls_total", "counter",
                "Calls that have ended.",
                [](const Stats& s) { return s.calls; });
  Family<Stats>(out, all, "baton_calls_failed_total", "counter",
                "Calls that have ended with an error.",
                [](const Stats& s) { return s.failed; });
  Family<Stats>(out, all, "baton_call_sent_bytes_total", "counter",
                "Bytes of requests or answers sent, tensors included.",
                [](const Stats& s) { return s.bytes_sent; });
  Family<Stats>(out, all, "baton_call_received_bytes_total", "counter",
                "Bytes of requests or answers received, tensors included.",
                [](const Stats& s) { return s.bytes_received; });
  AddDurations(out, all);
}

void AddChannels(Exposition& out, const std::vector<rpc::ChannelInfo>& all) {
  using Channel = rpc::ChannelInfo;
  Family<Channel>(out, all, "baton_channel_up", "gauge",
                  "1 while the channel is connected.",
                  [](const Channel& c) { return c.up ? 1 : 0; });
  Family<Channel>(out, all, "baton_channel_sent_bytes_total", "counter",
                  "Bytes that left on the channel.",
                  [](const Channel& c) { return c.bytes_sent; });
  Family<Channel>(out, all, "baton_channel_received_bytes_total", "counter",
                  "Bytes that came on the channel.",
                  [](const Channel& c) { return c.bytes_received; });
  Family<Channel>(out, all, "baton_channel_sent_messages_total", "counter",
                  "Messages that left on the channel.",
                  [](const Channel& c) { return c.messages_sent; });
  Family<Channel>(out, all, "baton_channel_received_messages_total", "counter",
                  "Messages that came on the channel.",
                  [](const Channel& c) { return c.messages_received; });
}

void AddTensorChannels(Exposition& out,
                       const std::vector<rpc::TensorChannelInfo>& all) {
  using Channel = rpc::TensorChannelInfo;
  out.Describe("baton_tensor_channel_open", "gauge",
               "1 while tensors travel by the channel; else the reason.");
  for (const Channel& channel : all) {
    Labels labels = LabelsOf(channel);
    labels.emplace_back("state", channel.state());
    labels.emplace_back("reason", channel.why_not);
    out.Sample("baton_tensor_channel_open", labels, channel.open ? 1 : 0);
  }
  const auto add = [&](const char* name, const char* type, const char* help,
                       uint64_t Channel::*figure) {
    Family<Channel>(out, all, name, type, help,
                    [figure](const Channel& c) { return c.*figure; });
  };
  add("baton_tensor_channel_sent_bytes_total", "counter",
      "Bytes of tensors that left by the channel, on this connection.",
      &Channel::bytes_sent);
  add("baton_tensor_channel_received_bytes_total", "counter",
      "Bytes of tensors that came by the channel, on this connection.",
      &Channel::bytes_received);
  add("baton_tensor_channel_sent_tensors_total", "counter",
      "Tensors that left by the channel, on this connection.",
      &Channel::tensors_sent);
  add("baton_tensor_channel_in_place_tensors_total", "counter",
      "Tensors among these that left without a copy.", &Channel::sent_in_place);
  add("baton_tensor_channel_received_tensors_total", "counter",
      "Tensors that came by the channel, on this connection.",
      &Channel::tensors_received);
  add("baton_tensor_channel_declined_total", "counter",
      "Tensors for which the channel had no room.", &Channel::declined);
  add("baton_tensor_channel_leases", "gauge",
      "Tensors sent that the peer still holds.", &Channel::leases);
  add("baton_tensor_channel_leased_bytes", "gauge", "Bytes of these.",
      &Channel::leased_bytes);
  add("baton_tensor_channel_made_bytes", "gauge",
      "Bytes of tensors made for the peer and not sent yet.",
      &Channel::made_bytes);
  add("baton_tensor_channel_capacity_bytes", "gauge",
      "Bytes that the peer may hold at most, as of now.",
      &Channel::capacity_bytes);
}

void AddCallsUnderWay(Exposition& out, const rpc::DebugInfo& info) {
  const std::pair<const char*, const std::vector<rpc::CallInfo>&> sides[] = {
      {"in", info.incoming}, {"out", info.outgoing}};
  out.Describe("baton_calls_in_flight", "gauge", "Calls under way.");
  for (const auto& [side, calls] : sides)
    out.Sample("baton_calls_in_flight", {{"direction", side}}, calls.size());
  out.Describe("baton_oldest_call_age_seconds", "gauge",
               "Age of the oldest call under way; 0 without one.");
  for (const auto& [side, calls] : sides) {
    int64_t oldest = 0;
    for (const rpc::CallInfo& call : calls)
      oldest = std::max(oldest, call.age_ms);
    out.Sample("baton_oldest_call_age_seconds", {{"direction", side}},
               static_cast<double>(oldest) / 1e3);
  }
}

void AddObjects(Exposition& out, const rpc::DebugInfo& info) {
  int64_t bytes = 0, oldest = 0;
  for (const rpc::ObjectInfo& object : info.objects) {
    bytes += std::max<int64_t>(object.bytes, 0);
    oldest = std::max(oldest, object.age_ms);
  }
  out.Single("baton_objects", "gauge", "Objects owned.", info.objects.size());
  out.Single("baton_object_bytes", "gauge",
             "Bytes of the objects owned whose size is known, when made.",
             bytes);
  out.Single("baton_oldest_object_age_seconds", "gauge",
             "Age of the oldest object owned; 0 without one.",
             static_cast<double>(oldest) / 1e3);
  out.Single("baton_handles", "gauge", "Objects of others that are held.",
             info.user_handles);
  out.Single("baton_transfers", "gauge",
             "RRefs sent whose arrival is not known yet.", info.transfers);
}

// Adds the tables of the layers above: numbers of rows and sums of columns of
// bytes.
void AddViews(Exposition& out, const std::vector<rpc::View>& views) {
  out.Describe("baton_view_rows", "gauge",
               "Rows of a table that a layer above rpc shows.");
  for (const rpc::View& view : views)
    out.Sample("baton_view_rows", {{"view", view.name}}, view.rows.size());
  out.Describe("baton_view_bytes", "gauge",
               "Sum of a column of bytes of such a table.");
  for (const rpc::View& view : views) {
    for (size_t i = 0; i < view.columns.size(); ++i) {
      if (view.columns[i].unit != rpc::View::Unit::kBytes) continue;
      int64_t sum = 0;
      for (const auto& row : view.rows) {
        int64_t bytes = 0;
        if (i < row.size() && absl::SimpleAtoi(row[i], &bytes)) sum += bytes;
      }
      out.Sample("baton_view_bytes",
                 {{"view", view.name}, {"column", view.columns[i].name}}, sum);
    }
  }
}

}  // namespace

ProcessUse UseOfThisProcess() {
  ProcessUse use;
  int64_t pages = 0;
  std::ifstream statm("/proc/self/statm");
  if (statm >> pages >> pages) use.resident_bytes = pages * ::getpagesize();
  std::error_code error;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd", error)) {
    ++use.open_files;
  }
  return use;
}

std::string PrometheusText(const rpc::DebugInfo& info, const ProcessUse& use) {
  Exposition out;
  out.Describe("baton_info", "gauge", "1; what this worker is.");
  out.Sample("baton_info",
             {{"version", kVersion},
              {"worker", info.self.name},
              {"rank", absl::StrCat(static_cast<int>(info.self.rank))},
              {"compute", info.self.compute.ToString()}},
             1);
  out.Single("baton_uptime_seconds", "gauge",
             "Time since the worker has begun.",
             static_cast<double>(info.uptime_ms) / 1e3);
  out.Single("baton_threads", "gauge", "Handlers that run at a time.",
             info.worker_threads);
  out.Single("baton_calls_served_total", "counter", "Calls served.",
             info.calls_served);
  AddCallsUnderWay(out, info);
  AddMethods(out, info.methods);
  AddObjects(out, info);
  AddChannels(out, info.channels);
  AddTensorChannels(out, info.tensor_channels);
  AddViews(out, info.views);
  out.Single("process_resident_memory_bytes", "gauge",
             "Resident memory of the process.", use.resident_bytes);
  out.Single("process_open_fds", "gauge", "Open file descriptors.",
             use.open_files);
  return out.Take();
}

}  // namespace baton::tools
