// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

namespace baton::rpc {

// From here on what gRPC and protobuf have to say goes where the process's own
// lines go: TLS handshakes that failed as warnings, at most one a second, as
// strangers may cause many; all else for debugging, since it reaches its user
// as a status. Idempotent. Thread-safe.
void TakeGrpcLog();

}  // namespace baton::rpc
