// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/options.h"

#include <array>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::dist {
namespace {

constexpr std::array<std::pair<Consistency, const char*>, 3> kModes = {
    {{Consistency::kBulkSynchronous, "bsp"},
     {Consistency::kBoundedStale, "ssp"},
     {Consistency::kAsynchronous, "async"}}};

absl::Status CheckRule(const ops::StepRule& rule) {
  return CatchErrors(
      [&] { std::visit([](const auto& options) { options.Check(); }, rule); });
}

absl::Status CheckTable(const RowTableOptions& table) {
  if (table.width < 1 || table.limit < 0 || table.scale < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("table ", table.name,
                     ": width is 1 or more, limit and scale 0 or more"));
  }
  const bool steps_rows =
      std::visit([](const auto& rule) { return rule.StepsRows(); }, table.rule);
  if (table.rows < 0 || (table.rows > 0 && (table.limit > 0 || !steps_rows))) {
    return absl::InvalidArgumentError(
        absl::StrCat("table ", table.name,
                     ": one of a fixed number of rows has no limit, and is "
                     "stepped by SGD or "
                     "Adagrad without momentum and decay, or by SparseAdam"));
  }
  return Annotate(CheckRule(table.rule), absl::StrCat("table ", table.name));
}

}  // namespace

const char* Name(Consistency mode) {
  for (const auto& [known, name] : kModes)
    if (known == mode) return name;
  return "unknown";
}

std::optional<Consistency> ConsistencyFromName(const std::string& name) {
  for (const auto& [mode, known] : kModes)
    if (name == known) return mode;
  return std::nullopt;
}

absl::Status Check(const ServerOptions& options) {
  if (options.staleness < 0 || options.trainers < 1 || options.part_bytes < 4 ||
      options.compute_threads < 0) {
    return absl::InvalidArgumentError(
        "servers: staleness and compute_threads are 0 or more, trainers 1 or "
        "more, part_bytes 4 or more");
  }
  const size_t named = options.trainer_workers.size();
  if (named > 0 && named != static_cast<size_t>(options.trainers)) {
    return absl::InvalidArgumentError(
        absl::StrCat("servers: ", options.trainers, " trainers are expected, ",
                     "but trainer_workers names ", named));
  }
  RETURN_IF_ERROR(CheckRule(options.rule));
  if (std::holds_alternative<ops::SparseAdamRule>(options.rule)) {
    return absl::InvalidArgumentError(
        "servers: SparseAdam steps rows of tables alone, and dense keys have "
        "none: give ServerOptions::rule as AdamRule, and SparseAdam as the "
        "rule "
        "of tables");
  }
  std::set<std::string> names;
  for (const RowTableOptions& table : options.tables) {
    if (!names.insert(table.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two tables are called ", table.name));
    }
    RETURN_IF_ERROR(CheckTable(table));
  }
  return absl::OkStatus();
}

std::vector<ops::StateSlot> UsedSlots(const ops::StepRule& rule) {
  return std::visit(
      [](const auto& options) {
        const auto slots = options.Slots();
        return std::vector<ops::StateSlot>(slots.begin(), slots.end());
      },
      rule);
}

}  // namespace baton::dist

namespace baton::rpc {
namespace {

template <size_t kKind = 0>
ops::StepRule RuleOfKind(size_t kind, Decoder& decoder) {
  if constexpr (kKind < std::variant_size_v<ops::StepRule>) {
    if (kind == kKind)
      return decoder.Get<std::variant_alternative_t<kKind, ops::StepRule>>();
    return RuleOfKind<kKind + 1>(kind, decoder);
  } else {
    decoder.Fail(absl::InvalidArgumentError("a step rule of unknown kind"));
    return {};
  }
}

}  // namespace

void Codec<ops::StepRule>::Encode(Encoder& encoder, const ops::StepRule& rule) {
  encoder.Put(static_cast<uint8_t>(rule.index()));
  std::visit([&](const auto& options) { encoder.Put(options); }, rule);
}

ops::StepRule Codec<ops::StepRule>::Decode(Decoder& decoder) {
  return RuleOfKind(decoder.Get<uint8_t>(), decoder);
}

}  // namespace baton::rpc
