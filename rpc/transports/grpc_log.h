// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

namespace baton::rpc {

// Sends the log lines of gRPC and protobuf to the log of this process. Failed
// TLS handshakes become warnings, at most one a second, since unauthenticated
// peers can cause many. All other lines are for debugging, because users get
// those errors as statuses. Idempotent. Thread-safe.
void TakeGrpcLog();

}  // namespace baton::rpc
