// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/status.h"

#include <cstdio>
#include <cstdlib>
#include <new>

namespace baton {

Error::Error(absl::Status status)
    : status_(std::move(status)), text_(status_.message()) {}

void Fail(const char* op, const std::string& message, absl::StatusCode code) {
  throw Error(absl::Status(code, absl::StrCat("[", op, "] ", message)));
}

absl::Status StatusFromCurrentException() {
  try {
    throw;
  } catch (const Error& error) {
    return error.status();
  } catch (const absl::BadStatusOrAccess& error) {
    return error.status();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  } catch (...) {
    return absl::InternalError("unknown exception");
  }
}

absl::Status Annotate(const absl::Status& status, const std::string& context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(),
                         absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload([&](auto url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

namespace internal {
void CheckFailed(const char* file, int line, const char* what) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, what);
  std::abort();
}
}  // namespace internal
}  // namespace baton
