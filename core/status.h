// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

// Everything that can fail for a reason outside the caller's program returns
// Status or StatusOr. Local tensor math alone throws baton::Error, which holds
// a Status whose text begins with the op: "[conv2d] expected ...". It is caught
// in the RPC dispatcher, the autograd node runner and main. See docs/errors.md.
namespace baton {

class Error final : public std::exception {
 public:
  explicit Error(absl::Status status);

  const absl::Status& status() const { return status_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  absl::Status status_;
  std::string text_;
};

// Throws Error(code, "[op] message").
[[noreturn]] void Fail(
    const char* op, const std::string& message,
    absl::StatusCode code = absl::StatusCode::kInvalidArgument);

// Throws Error(InvalidArgument, "[op] " + parts) unless `ok`.
template <typename... Parts>
void Require(bool ok, const char* op, const Parts&... parts) {
  if (!ok) [[unlikely]]
    Fail(op, absl::StrCat(parts...));
}

// Returns the Status of the exception being handled; call it only inside a
// catch block.
absl::Status StatusFromCurrentException();

// Runs `fn` (returning void, Status or StatusOr) and converts an exception to a
// Status.
template <typename Fn>
auto CatchErrors(Fn&& fn) {
  using R = decltype(fn());
  if constexpr (std::is_void_v<R>) {
    try {
      fn();
      return absl::OkStatus();
    } catch (...) {
      return StatusFromCurrentException();
    }
  } else {
    try {
      return fn();
    } catch (...) {
      return R(StatusFromCurrentException());
    }
  }
}

// Returns `status` with "context: " in front of its text; OK stays OK.
absl::Status Annotate(const absl::Status& status, const std::string& context);

namespace internal {
[[noreturn]] void CheckFailed(const char* file, int line, const char* what);
}  // namespace internal
}  // namespace baton

// Aborts if an invariant of our own is broken; never use it for data from the
// network.
#define BATON_CHECK(condition)                                        \
  do {                                                                \
    if (!(condition)) [[unlikely]]                                    \
      ::baton::internal::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (false)

#define RETURN_IF_ERROR(expr)                                       \
  do {                                                              \
    if (::absl::Status baton_status_ = (expr); !baton_status_.ok()) \
      return baton_status_;                                         \
  } while (false)

#define BATON_CONCAT_INNER(a, b) a##b
#define BATON_CONCAT(a, b) BATON_CONCAT_INNER(a, b)
#define BATON_ASSIGN_OR_RETURN(var, lhs, expr)   \
  auto var = (expr);                             \
  if (!var.ok()) return std::move(var).status(); \
  lhs = *std::move(var)
#define ASSIGN_OR_RETURN(lhs, expr) \
  BATON_ASSIGN_OR_RETURN(BATON_CONCAT(baton_statusor_, __LINE__), lhs, expr)
