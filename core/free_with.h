// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

namespace baton {

// A deleter that calls a C library's function:
//   std::unique_ptr<X509, FreeWith<X509_free>>
// Stateless.
template <auto kFree>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

}  // namespace baton
