// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/view/cluster_tables.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "rpc/histogram.h"

namespace baton::tools {
namespace {

using rpc::View;
using Unit = View::Unit;
using Reports = std::vector<WorkerReport>;
using Row = std::vector<std::string>;

constexpr Unit kText = Unit::kText, kCount = Unit::kCount,
               kBytes = Unit::kBytes, kMs = Unit::kMilliseconds;

std::string Known(int64_t number) {
  return number < 0 ? "" : absl::StrCat(number);
}

// Returns "bob" or "bob x3" for each holder.
std::string Holders(const rpc::ObjectInfo& object) {
  std::map<std::string, int> counts;
  for (const std::string& holder : object.holders) ++counts[holder];
  std::vector<std::string> parts;
  for (const auto& [holder, count] : counts) {
    parts.push_back(count == 1 ? holder : absl::StrCat(holder, " x", count));
  }
  if (object.local_handles > 0)
    parts.push_back(absl::StrCat("itself x", object.local_handles));
  return absl::StrJoin(parts, ", ");
}

int64_t HeldBytes(const rpc::DebugInfo& info) {
  int64_t bytes = 0;
  for (const auto& object : info.objects)
    bytes += std::max<int64_t>(object.bytes, 0);
  return bytes;
}

std::string Quantile(const rpc::MethodStats& stats, double q) {
  if (stats.calls == 0) return "";
  return absl::StrFormat("%.3f", rpc::QuantileUs(stats.latency, q) / 1e3);
}

// Sorts rows by number, the greatest first.
void SortDown(View& table, std::vector<std::pair<int64_t, Row>> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.first > b.first;
  });
  for (auto& [key, row] : rows) table.rows.push_back(std::move(row));
}

}  // namespace

View WorkersTable(const Reports& reports) {
  View table{.name = "workers",
             .columns = {{"worker", kText},
                         {"rank", kCount},
                         {"compute", kText},
                         {"state", kText},
                         {"up_for", kMs},
                         {"threads", kCount},
                         {"calls_out", kCount},
                         {"calls_in", kCount},
                         {"served", kCount},
                         {"objects", kCount},
                         {"object_bytes", kBytes},
                         {"handles", kCount},
                         {"address", kText},
                         {"detail", kText}}};
  for (const WorkerReport& report : reports) {
    const rpc::DebugInfo& info = report.info;
    const std::string address =
        report.worker.address.substr(0, report.worker.address.find(';'));
    Row row = {report.worker.name,
               absl::StrCat(static_cast<int>(report.worker.rank)),
               report.worker.compute.ToString()};
    if (report.status.ok()) {
      row.insert(
          row.end(),
          {info.Idle() ? "idle" : "up", absl::StrCat(info.uptime_ms),
           absl::StrCat(info.worker_threads),
           absl::StrCat(info.outgoing.size()),
           absl::StrCat(info.incoming.size()), absl::StrCat(info.calls_served),
           absl::StrCat(info.objects.size()), absl::StrCat(HeldBytes(info)),
           absl::StrCat(info.user_handles), address, ""});
    } else {
      row.push_back(report.gone ? "gone" : "no answer");
      row.resize(table.columns.size() - 2);
      row.push_back(address);
      row.push_back(std::string(report.status.message()));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

View CallsTable(const Reports& reports) {
  View table{.name = "calls",
             .columns = {{"age", kMs},
                         {"worker", kText},
                         {"direction", kText},
                         {"peer", kText},
                         {"method", kText}}};
  std::vector<std::pair<int64_t, Row>> rows;
  for (const WorkerReport& report : reports) {
    const auto add = [&](const rpc::CallInfo& call, const char* direction) {
      rows.emplace_back(call.age_ms,
                        Row{absl::StrCat(call.age_ms), report.worker.name,
                            direction, call.peer, call.method});
    };
    for (const auto& call : report.info.outgoing) add(call, "to");
    for (const auto& call : report.info.incoming) add(call, "from");
  }
  SortDown(table, std::move(rows));
  return table;
}

View ObjectsTable(const Reports& reports) {
  View table{.name = "rrefs",
             .columns = {{"owner", kText},
                         {"object", kText},
                         {"type", kText},
                         {"state", kText},
                         {"bytes", kBytes},
                         {"age", kMs},
                         {"made_by", kText},
                         {"made_at", kText},
                         {"holders", kText},
                         {"used_by", kText},
                         {"waiting", kCount}}};
  std::vector<std::pair<int64_t, Row>> rows;
  for (const WorkerReport& report : reports) {
    for (const auto& object : report.info.objects) {
      rows.emplace_back(
          object.age_ms,
          Row{report.worker.name, object.id, object.type, object.state,
              Known(object.bytes), absl::StrCat(object.age_ms), object.made_by,
              object.made_at, Holders(object),
              absl::StrJoin(object.used_by, ", "),
              absl::StrCat(object.waited_for_by.size())});
    }
  }
  SortDown(table, std::move(rows));
  return table;
}

View ChannelsTable(const Reports& reports) {
  View table{.name = "channels",
             .columns = {{"worker", kText},
                         {"peer", kText},
                         {"channel", kText},
                         {"state", kText},
                         {"messages_sent", kCount},
                         {"bytes_sent", kBytes},
                         {"messages_received", kCount},
                         {"bytes_received", kBytes},
                         {"detail", kText}}};
  for (const WorkerReport& report : reports) {
    for (const auto& channel : report.info.channels) {
      table.rows.push_back(
          {report.worker.name, channel.peer, channel.name,
           channel.up ? "up" : "down", absl::StrCat(channel.messages_sent),
           absl::StrCat(channel.bytes_sent),
           absl::StrCat(channel.messages_received),
           absl::StrCat(channel.bytes_received), channel.detail});
    }
  }
  return table;
}

View TensorChannelsTable(const Reports& reports) {
  View table{.name = "tensor_channels",
             .columns = {{"worker", kText},
                         {"peer", kText},
                         {"channel", kText},
                         {"state", kText},
                         {"tensors_sent", kCount},
                         {"in_place", kCount},
                         {"bytes_sent", kBytes},
                         {"tensors_received", kCount},
                         {"bytes_received", kBytes},
                         {"declined", kCount},
                         {"leases", kCount},
                         {"leased_bytes", kBytes},
                         {"made_bytes", kBytes},
                         {"capacity", kBytes},
                         {"why_not", kText}}};
  for (const WorkerReport& report : reports) {
    for (const auto& channel : report.info.tensor_channels) {
      table.rows.push_back(
          {report.worker.name, channel.peer, channel.name, channel.state(),
           absl::StrCat(channel.tensors_sent),
           absl::StrCat(channel.sent_in_place),
           absl::StrCat(channel.bytes_sent),
           absl::StrCat(channel.tensors_received),
           absl::StrCat(channel.bytes_received), absl::StrCat(channel.declined),
           absl::StrCat(channel.leases), absl::StrCat(channel.leased_bytes),
           absl::StrCat(channel.made_bytes),
           absl::StrCat(channel.capacity_bytes), channel.why_not});
    }
  }
  return table;
}

View MethodsTable(const Reports& reports) {
  View table{.name = "methods",
             .columns = {{"worker", kText},
                         {"direction", kText},
                         {"peer", kText},
                         {"method", kText},
                         {"calls", kCount},
                         {"failed", kCount},
                         {"p50", kMs},
                         {"p99", kMs},
                         {"bytes_sent", kBytes},
                         {"bytes_received", kBytes}}};
  std::vector<std::pair<int64_t, Row>> rows;
  for (const WorkerReport& report : reports) {
    for (const auto& method : report.info.methods) {
      rows.emplace_back(
          static_cast<int64_t>(method.calls),
          Row{report.worker.name, method.incoming ? "from" : "to", method.peer,
              method.method, absl::StrCat(method.calls),
              absl::StrCat(method.failed), Quantile(method, 0.5),
              Quantile(method, 0.99), absl::StrCat(method.bytes_sent),
              absl::StrCat(method.bytes_received)});
    }
  }
  SortDown(table, std::move(rows));
  return table;
}

View ContributedTable(const Reports& reports, const std::string& name) {
  View table{.name = name};
  for (const WorkerReport& report : reports) {
    for (const View& view : report.info.views) {
      if (view.name != name) continue;
      if (table.columns.empty()) {
        table.columns = view.columns;
        table.columns.insert(table.columns.begin(), {"worker", kText});
      }
      for (const Row& cells : view.rows) {
        Row row = cells;
        row.insert(row.begin(), report.worker.name);
        table.rows.push_back(std::move(row));
      }
    }
  }
  return table;
}

std::vector<View> TablesOf(const std::string& command, const Reports& reports) {
  if (command == "status") return {WorkersTable(reports), CallsTable(reports)};
  if (command == "rrefs") return {ObjectsTable(reports)};
  if (command == "contexts") return {ContributedTable(reports, "contexts")};
  if (command == "channels")
    return {ChannelsTable(reports), TensorChannelsTable(reports),
            MethodsTable(reports)};
  return {};
}

}  // namespace baton::tools
