// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/view/merged_trace.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "rpc/shown_name.h"
#include "tools/view/table.h"

namespace baton::tools {
namespace {

using rpc::TraceEvent;
using Json = nlohmann::json;
using Traces = std::vector<WorkerTrace>;

constexpr uint64_t kShownBytes = 4096;

// Caller, callee, number.
using CallKey = std::tuple<std::string, std::string, uint64_t>;

// The two sides of a call, by indices of trace and event.
struct Pair {
  size_t caller = 0;
  size_t callee = 0;
  const TraceEvent* made = nullptr;
  const TraceEvent* served = nullptr;

  // A caller that gave up has no answer.
  bool answered() const { return made->ok || made->answer_bytes > 0; }
};

std::vector<Pair> PairsOf(const Traces& traces) {
  std::map<CallKey, Pair> pairs;
  for (size_t i = 0; i < traces.size(); ++i) {
    const std::string& self = traces[i].worker.name;
    for (const TraceEvent& event : traces[i].log.events) {
      if (event.number == 0) continue;
      if (event.kind == TraceEvent::Kind::kCall) {
        Pair& pair = pairs[{self, event.peer, event.number}];
        pair.caller = i;
        pair.made = &event;
      } else if (event.kind == TraceEvent::Kind::kServe) {
        Pair& pair = pairs[{event.peer, self, event.number}];
        pair.callee = i;
        pair.served = &event;
      }
    }
  }
  std::vector<Pair> whole;
  for (const auto& [key, pair] : pairs) {
    if (pair.made != nullptr && pair.served != nullptr) whole.push_back(pair);
  }
  return whole;
}

// Assigns slices to rows of a process so that they do not overlap.
class Rows {
 public:
  Rows(Json& events, int process, std::string name, int first)
      : events_(events),
        process_(process),
        name_(std::move(name)),
        first_(first) {}

  // Call it in the order of `begin`.
  int RowFor(int64_t begin, int64_t end) {
    size_t row = 0;
    while (row < ends_.size() && ends_[row] > begin) ++row;
    if (row == ends_.size()) {
      ends_.push_back(0);
      const int id = first_ + static_cast<int>(row);
      events_.push_back({{"ph", "M"},
                         {"name", "thread_name"},
                         {"pid", process_},
                         {"tid", id},
                         {"args", {{"name", name_}}}});
      events_.push_back({{"ph", "M"},
                         {"name", "thread_sort_index"},
                         {"pid", process_},
                         {"tid", id},
                         {"args", {{"sort_index", id}}}});
    }
    ends_[row] = end;
    return first_ + static_cast<int>(row);
  }

 private:
  Json& events_;
  const int process_;
  const std::string name_;
  const int first_;
  std::vector<int64_t> ends_;
};

class Writer {
 public:
  explicit Writer(const Traces& traces) : traces_(traces) {
    for (size_t i = 0; i < traces.size(); ++i) {
      for (const TraceEvent& event : traces[i].log.events)
        origin_ = std::min(origin_, event.begin_ns - Ahead(i));
    }
  }

  std::string Write() {
    for (size_t i = 0; i < traces_.size(); ++i) WriteWorker(i);
    WriteMessages();
    Json root = {{"displayTimeUnit", "ms"},
                 {"traceEvents", std::move(events_)}};
    for (const WorkerTrace& trace : traces_) {
      root["otherData"][trace.worker.name] = {
          {"clock_ahead_ns", trace.clock.ahead_ns},
          {"clock_within_ns", trace.clock.within_ns},
          {"events_dropped", trace.log.dropped},
          {"notes", trace.log.notes}};
    }
    return root.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  static constexpr int kMessages = 0;  // the process for messages on their way
  // Each track has fifty rows; GPUs have many tracks.
  static constexpr int kTrackRows = 1, kServedRows = 1'000'000;
  static constexpr int kMadeRows = 2'000'000;

  int64_t Ahead(size_t trace) const { return traces_[trace].clock.ahead_ns; }
  // Returns nanoseconds since the beginning, by this process's clock.
  int64_t Time(size_t trace, int64_t ns) const {
    return ns - Ahead(trace) - origin_;
  }
  static double Micros(int64_t ns) { return static_cast<double>(ns) / 1e3; }

  void Process(int id, const std::string& name, int place) {
    events_.push_back({{"ph", "M"},
                       {"name", "process_name"},
                       {"pid", id},
                       {"args", {{"name", name}}}});
    events_.push_back({{"ph", "M"},
                       {"name", "process_sort_index"},
                       {"pid", id},
                       {"args", {{"sort_index", place}}}});
  }

  void Slice(int process, int row, const std::string& name,
             const char* category, int64_t begin, int64_t end, Json args) {
    events_.push_back({{"ph", "X"},
                       {"name", rpc::ShownName(name)},
                       {"cat", category},
                       {"pid", process},
                       {"tid", row},
                       {"ts", Micros(begin)},
                       {"dur", Micros(end - begin)},
                       {"args", std::move(args)}});
  }

  void Arrow(const char* name, int from, int from_row, int64_t sent, int to,
             int to_row, int64_t came) {
    const int id = ++arrows_;
    const auto end = [&](const char* phase, int process, int row, int64_t at) {
      Json event = {{"ph", phase},     {"id", id},       {"name", name},
                    {"cat", "call"},   {"pid", process}, {"tid", row},
                    {"ts", Micros(at)}};
      if (*phase == 'f') event["bp"] = "e";
      events_.push_back(std::move(event));
    };
    end("s", from, from_row, sent);
    end("f", to, to_row, came);
  }

  void WriteWorker(size_t i) {
    const WorkerTrace& trace = traces_[i];
    const int process = static_cast<int>(i) + 1;
    Process(process, trace.worker.name, process);
    std::vector<const TraceEvent*> sorted;
    for (const TraceEvent& event : trace.log.events) sorted.push_back(&event);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const TraceEvent* a, const TraceEvent* b) {
                       return a->begin_ns < b->begin_ns;
                     });
    Rows made(events_, process, "calls made", kMadeRows);
    Rows served(events_, process, "calls served", kServedRows);
    std::map<std::string, Rows> tracks;
    for (const TraceEvent* event : sorted) {
      const int64_t begin = Time(i, event->begin_ns);
      const int64_t end = std::max(begin, Time(i, event->end_ns));
      if (event->kind == TraceEvent::Kind::kSpan) {
        const int first = kTrackRows + 50 * static_cast<int>(tracks.size());
        auto track =
            tracks
                .try_emplace(event->peer, events_, process, event->peer, first)
                .first;
        Json args = Json::object();
        if (event->request_bytes > 0) args["bytes"] = event->request_bytes;
        Slice(process, track->second.RowFor(begin, end), event->name, "span",
              begin, end, std::move(args));
        continue;
      }
      const bool call = event->kind == TraceEvent::Kind::kCall;
      const int row = (call ? made : served).RowFor(begin, end);
      row_of_[event] = row;
      Json args = {{call ? "to" : "from", event->peer},
                   {"request_bytes", event->request_bytes},
                   {"answer_bytes", event->answer_bytes},
                   {call ? "encoding_us" : "waiting_us",
                    Micros(event->mid_ns - event->begin_ns)}};
      if (!event->ok) args["failed"] = true;
      Slice(process, row, event->name, call ? "call" : "serve", begin, end,
            std::move(args));
    }
  }

  struct Flight {
    int64_t sent = 0, came = 0;
    std::string name;
    uint64_t bytes = 0;
  };

  void WriteMessages() {
    std::map<std::string, std::vector<Flight>> flights;
    for (const Pair& pair : PairsOf(traces_)) {
      const int64_t sent = Time(pair.caller, pair.made->mid_ns);
      const int64_t came = Time(pair.callee, pair.served->begin_ns);
      const int caller = static_cast<int>(pair.caller) + 1;
      const int callee = static_cast<int>(pair.callee) + 1;
      const int made_row = row_of_.at(pair.made);
      const int served_row = row_of_.at(pair.served);
      const std::string& from = traces_[pair.caller].worker.name;
      const std::string& to = traces_[pair.callee].worker.name;
      Arrow("request", caller, made_row, sent, callee, served_row, came);
      if (pair.made->request_bytes >= kShownBytes) {
        flights[absl::StrCat(from, " to ", to)].push_back(
            {sent, came, pair.made->name, pair.made->request_bytes});
      }
      if (!pair.answered()) continue;
      const int64_t left = Time(pair.callee, pair.served->end_ns);
      const int64_t back = Time(pair.caller, pair.made->end_ns);
      Arrow("answer", callee, served_row, left, caller, made_row, back);
      if (pair.made->answer_bytes >= kShownBytes) {
        flights[absl::StrCat(to, " to ", from)].push_back(
            {left, back, pair.made->name, pair.made->answer_bytes});
      }
    }
    if (flights.empty()) return;
    Process(kMessages, "messages", kMessages);
    int first = kTrackRows;
    for (auto& [name, all] : flights) {
      std::sort(all.begin(), all.end(), [](const Flight& a, const Flight& b) {
        return a.sent < b.sent;
      });
      Rows rows(events_, kMessages, name, first);
      first += 1000;
      for (const Flight& flight : all) {
        Slice(kMessages, rows.RowFor(flight.sent, flight.came),
              absl::StrCat(flight.name, ", ",
                           FormatBytes(static_cast<double>(flight.bytes))),
              "message", flight.sent, flight.came, {{"bytes", flight.bytes}});
      }
    }
  }

  const Traces& traces_;
  int64_t origin_ = std::numeric_limits<int64_t>::max();
  int arrows_ = 0;
  Json events_ = Json::array();
  std::map<const TraceEvent*, int> row_of_;
};

}  // namespace

ClockOffset OffsetFrom(const std::vector<ClockReading>& readings) {
  if (readings.empty()) return {};
  const ClockReading& best = Fastest(readings);
  return {best.read_ns - best.middle_ns(), best.took_ns() / 2};
}

// Each message implies that one clock is behind another by at least some
// amount. The true offsets satisfy all these bounds, so moving the clocks that
// violate one ends: there is no cycle of violations.
void CorrectByMessages(Traces& traces) {
  std::map<std::pair<size_t, size_t>, int64_t> early;  // least came - sent
  const auto note = [&](size_t from, int64_t sent, size_t to, int64_t came) {
    if (from == to) return;
    auto [place, added] = early.try_emplace({from, to}, came - sent);
    if (!added) place->second = std::min(place->second, came - sent);
  };
  for (const Pair& pair : PairsOf(traces)) {
    note(pair.caller, pair.made->mid_ns, pair.callee, pair.served->begin_ns);
    if (pair.answered())
      note(pair.callee, pair.served->end_ns, pair.caller, pair.made->end_ns);
  }
  for (size_t round = 0; round <= traces.size(); ++round) {
    bool moved = false;
    for (const auto& [workers, least] : early) {
      const auto& [from, to] = workers;
      // came - ahead[to] >= sent - ahead[from]
      const int64_t most = least + traces[from].clock.ahead_ns;
      if (traces[to].clock.ahead_ns <= most) continue;
      traces[to].clock.ahead_ns = most;
      moved = true;
    }
    if (!moved) return;
  }
}

std::string MergedTrace(const Traces& traces) { return Writer(traces).Write(); }

}  // namespace baton::tools
