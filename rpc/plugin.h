// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "core/tensor.h"
#include "core/version.h"
#include "rpc/call_context.h"
#include "rpc/codec.h"
#include "rpc/methods.h"
#include "rpc/registry.h"

// Classes that a running daemon takes from a shared library:
//
//   // scale.cc, built by baton_plugin(scale scale.cc)
//   void AddScale(baton::rpc::Registry& registry) { registry.Add<Scale>(); }
//   BATON_PLUGIN("scale", AddScale);
//
//   baton-worker --plugin=./libscale.so ...
//
// A plug-in holds no copy of Baton: its symbols are those of the program that
// loads it, which must export them all (baton_plugin_host in CMake). It is
// built with the same Baton and compiler family; LoadPlugin asks the entry
// point for that and calls nothing else where it does not fit. But the loader
// has run static constructors by then, of the plug-in and of the libraries that
// it needs: the check finds mistakes, it does not make a file safe to load that
// others may write. docs/remote_modules.md shows the whole way.
namespace baton::rpc {

// Of PluginInfo and the entry point's name.
inline constexpr uint32_t kPluginAbi = 1;

// What the entry point, `const PluginInfo* baton_plugin()`, gives. The first
// field stays the first in every version; the others are those of its version.
struct PluginInfo {
  uint32_t abi = kPluginAbi;
  const char* baton = "";     // kVersion of the headers
  const char* compiler = "";  // and standard library
  uint64_t layout = 0;        // of the types that cross the border
  const char* name = "";      // for people
  void (*add)(Registry&) = nullptr;
};

namespace internal {

inline constexpr char kPluginCompiler[] =
#if defined(__clang__)
    "clang"
#else
    "g++"
#endif
#if defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
    " with the old std::string"
#endif
    ;

// Flags and macros that change a type's layout show in its size.
constexpr uint64_t PluginLayout() {
  uint64_t hash = HashName("baton plug-in layout");
  for (const size_t size :
       {sizeof(Registry), sizeof(Registry::Method), sizeof(Tensor),
        sizeof(CallContext::State), sizeof(Encoder), sizeof(Decoder),
        sizeof(AnyValue), sizeof(ValueType), sizeof(WorkerInfo),
        sizeof(std::string), sizeof(absl::Status)}) {
    hash = (hash ^ size) * 0x100000001b3ull;
  }
  return hash;
}

constexpr PluginInfo ThisPlugin(const char* name, void (*add)(Registry&)) {
  return {kPluginAbi, kVersion, kPluginCompiler, PluginLayout(), name, add};
}

}  // namespace internal

// Loads the plug-in in the file `path`, which has a slash, as none is searched
// for, and adds what it exports to `registry`. It stays loaded for ever:
// objects of its classes may, and static constructors have run, also where it
// is refused. Errors name the file:
//   NotFound            there is no such file
//   InvalidArgument     the path has no slash; it is no library, misses symbols
//                       or has no entry point
//   FailedPrecondition  it was built with another Baton or compiler
//   AlreadyExists       it exports what the registry has already
// or what its own function threw.
absl::Status LoadPlugin(const std::string& path, Registry& registry);

}  // namespace baton::rpc

// The entry point, once in each plug-in. `add` is a function (Registry&) ->
// void.
#define BATON_PLUGIN(name, add)                        \
  extern "C" __attribute__((visibility("default")))    \
  const ::baton::rpc::PluginInfo*                      \
  baton_plugin() {                                     \
    static constexpr ::baton::rpc::PluginInfo info =   \
        ::baton::rpc::internal::ThisPlugin(name, add); \
    return &info;                                      \
  }                                                    \
  static_assert(true)
