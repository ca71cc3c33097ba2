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

// Lets a running daemon load classes from a shared library:
//
//   // scale.cc, built by baton_plugin(scale scale.cc)
//   void AddScale(baton::rpc::Registry& registry) { registry.Add<Scale>(); }
//   BATON_PLUGIN("scale", AddScale);
//
//   baton-worker --plugin=./libscale.so ...
//
// A plug-in contains no copy of Baton: it uses the symbols of the program that
// loads it, which must export them all (baton_plugin_host in CMake). It must be
// built with the same Baton version and compiler family. LoadPlugin asks the
// entry point for both and calls nothing else if they do not match. By then,
// however, the loader has run the static constructors of the plug-in and of the
// libraries that it needs: the check finds mistakes, but it does not make it
// safe to load a file that others can write. docs/tutorial.md has a complete
// example.
namespace baton::rpc {

// The version of PluginInfo and of the entry point's name.
inline constexpr uint32_t kPluginAbi = 1;

// What the entry point, `const PluginInfo* baton_plugin()`, returns. The first
// field is the same in every version and determines the others.
struct PluginInfo {
  uint32_t abi = kPluginAbi;
  const char* baton = "";     // kVersion of its headers
  const char* compiler = "";  // also names the standard library
  uint64_t layout = 0;    // hash of the sizes of the types that both sides use
  const char* name = "";  // for display
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

// A hash of type sizes, which detects flags and macros that change a type's
// layout.
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

// Loads the plug-in in the file `path` and adds its exports to `registry`. The
// path must contain a slash, as no directories are searched. The library is
// never unloaded, because objects of its classes may live on; its static
// constructors have run even if it is refused. Errors name the file:
//   NotFound            there is no such file
//   InvalidArgument     the path has no slash; it is no library, misses symbols
//                       or has no entry point
//   FailedPrecondition  it was built with another Baton or compiler
//   AlreadyExists       it exports what the registry has already
// or the error that its own function threw.
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
