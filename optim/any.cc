// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/any.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/status.h"
#include "optim/kinds.h"

namespace baton::optim {
namespace {

// Returns "beta1" for &AdamRule::beta1. Compilers include the member's name in
// the name of this function, so options need to be described only once, in
// Fields().
template <auto kMember>
std::string NameOf() {
  std::string text = __PRETTY_FUNCTION__;
  text = text.substr(text.find("kMember = "));
  text.resize(text.find_first_of(");]"));
  return text.substr(text.rfind(':') + 1);
}

// Calls fn(name, member) for each of Fields().
template <typename Options, typename Fn>
void ForEachField(Fn fn) {
  constexpr auto kFields = Options::Fields();
  constexpr size_t kCount = std::tuple_size_v<decltype(kFields)>;
  [&]<size_t... kAt>(std::index_sequence<kAt...>) {
    (fn(NameOf<std::get<kAt>(kFields)>(), std::get<kAt>(kFields)), ...);
  }
  (std::make_index_sequence<kCount>());
}

// Calls fn(options) with the options of `any`'s kind, with `lr` and `others`
// set.
template <typename Fn>
absl::Status VisitOptions(const AnyOptions& any, Fn fn) {
  bool found = false;
  absl::Status status;
  ForEachKind([&](const auto& kind) {
    if (kind.name != any.kind) return;
    found = true;
    using Kind = std::decay_t<decltype(kind)>;
    typename Kind::Optimizer::Options options;
    auto unknown = any.others;
    std::vector<std::string> names;
    ForEachField<decltype(options)>([&](const std::string& name, auto member) {
      names.push_back(name);
      const auto given = unknown.extract(name);
      using Member = std::decay_t<decltype(options.*member)>;
      if (given) options.*member = static_cast<Member>(given.mapped());
    });
    if (!unknown.empty()) {
      status = absl::InvalidArgumentError(
          absl::StrCat(any.kind, " has no option ", unknown.begin()->first,
                       "; it has ", absl::StrJoin(names, ", ")));
      return;
    }
    fn(options);
  });
  if (found) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("there is no optimizer '", any.kind, "'; there are ",
                   absl::StrJoin(AnyOptions::Kinds(), ", ")));
}

absl::StatusOr<double> NumberOf(const std::string& name,
                                const std::string& text) {
  double value = 0;
  bool flag = false;
  if (absl::SimpleAtod(text, &value)) return value;
  if (absl::SimpleAtob(text, &flag)) return flag ? 1.0 : 0.0;
  return absl::InvalidArgumentError(
      absl::StrCat("option ", name, " takes a number, got '", text, "'"));
}

}  // namespace

std::vector<std::string> AnyOptions::Kinds() {
  std::vector<std::string> names;
  ForEachKind([&](const auto& kind) { names.emplace_back(kind.name); });
  return names;
}

absl::StatusOr<AnyOptions> AnyOptions::Parse(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  AnyOptions any{.kind = parts.front()};
  RETURN_IF_ERROR(
      VisitOptions(any, [&](const auto& options) { any.lr = options.lr; }));
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::pair<std::string, std::string> option =
        absl::StrSplit(parts[i], absl::MaxSplits('=', 1));
    ASSIGN_OR_RETURN(const double value, NumberOf(option.first, option.second));
    RETURN_IF_ERROR(any.Set(option.first, value));
  }
  return any;
}

absl::Status AnyOptions::Set(const std::string& name, double value) {
  if (name == "lr") {
    lr = value;
    return absl::OkStatus();
  }
  AnyOptions next = *this;
  next.others[name] = value;
  RETURN_IF_ERROR(VisitOptions(next, [](const auto&) {}));
  *this = std::move(next);
  return absl::OkStatus();
}

AnyOptions::operator ops::StepRule() const {
  ops::StepRule rule;
  const absl::Status status = VisitOptions(*this, [&](auto options) {
    options.lr = lr;
    rule = ops::StepRule(options);
  });
  if (!status.ok()) throw Error(Annotate(status, "optimizer"));
  return rule;
}

int AnyOptions::state_tensors() const {
  return std::visit(
      [](const auto& rule) {
        const auto slots = rule.Slots();
        return static_cast<int>(std::count_if(
            slots.begin(), slots.end(),
            [](const auto& slot) { return slot.name != nullptr; }));
      },
      ops::StepRule(*this));
}

}  // namespace baton::optim
