// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/unregistered.h"

#include <optional>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rpc/call_options.h"
#include "rpc/shown_name.h"
#include "rpc/type_name.h"

namespace baton::rpc {
namespace {

// "Stage::Make" needs its class, and "LoadWeights" itself.
std::string LineFor(const std::string& method) {
  const size_t own = internal::LastPart(method).size();
  if (own == method.size())
    return absl::StrCat("registry.AddFunction<&", method, ">()");
  const size_t type = method.size() - own - 2;
  return absl::StrCat("registry.Add<", method.substr(0, type), ">()");
}

// RRef::Ready of an object that could not be made passes on the reason.
std::string WithoutReady(const std::string& text, const std::string& worker) {
  constexpr std::string_view kReady = ">::Ready: ";
  const size_t end = text.find(kReady);
  if (end == text.npos ||
      !absl::StartsWith(text, absl::StrCat(worker, ", RRef<")))
    return text;
  return text.substr(end + kReady.size());
}

}  // namespace

absl::Status WithLineFor(const absl::Status& answer,
                         const std::string& method) {
  if (!absl::IsUnimplemented(answer) || answer.message() != kNotRegistered)
    return answer;
  return absl::UnimplementedError(
      absl::StrCat(kNotRegistered, ": call ", LineFor(method),
                   " before joining, in every process"));
}

absl::Status NameMissing(const absl::Status& error, const std::string& what,
                         const std::string& line) {
  // Of nested calls, CallErrorOf knows the innermost, and the text begins with
  // the outermost.
  const std::optional<CallError> call = CallErrorOf(error);
  if (!absl::IsUnimplemented(error) || !call.has_value() ||
      !absl::StartsWith(
          WithoutReady(std::string(error.message()), call->worker),
          absl::StrCat(call->worker, ", ", call->method, ": ",
                       kNotRegistered))) {
    return error;
  }
  return absl::UnimplementedError(
      absl::StrCat(call->worker, ", ", ShownName(what), ": ", kNotRegistered,
                   ": ", ShownName(line), ", in every process"));
}

}  // namespace baton::rpc
