// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/plugin.h"

#include <dlfcn.h>

#include <filesystem>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::rpc {
namespace {

using EntryPoint = const PluginInfo* (*)();

std::string LastLoaderError() {
  const char* text = ::dlerror();
  return text == nullptr ? "no reason given" : text;
}

absl::StatusOr<EntryPoint> Open(const std::string& path) {
  if (path.find('/') == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("a file is named with its folder, as ./", path,
                     ": none is looked for"));
  }
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return absl::NotFoundError("no such file");
  // RTLD_NOW: a missing symbol is an error here instead of a crash in a later
  // call.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    // LoadPlugin's error text has the path already.
    std::string why = LastLoaderError();
    if (why.starts_with(path + ": ")) why.erase(0, path.size() + 2);
    const bool not_found =
        why.find("No such file or directory") != std::string::npos;
    return not_found ? absl::NotFoundError(why)
                     : absl::InvalidArgumentError(absl::StrCat(
                           why,
                           "; a plug-in links no library of Baton and is "
                           "loaded by a program that exports all of it"));
  }
  auto entry = reinterpret_cast<EntryPoint>(::dlsym(library, "baton_plugin"));
  if (entry == nullptr) {
    return absl::InvalidArgumentError(
        "no plug-in of Baton: it has no baton_plugin(); write "
        "BATON_PLUGIN(name, function) in one of its sources");
  }
  return entry;
}

absl::Status CheckFits(const PluginInfo* info) {
  if (info == nullptr) {
    return absl::FailedPreconditionError("its baton_plugin() gives nothing");
  }
  if (info->abi != kPluginAbi) {
    return absl::FailedPreconditionError(
        absl::StrCat("made for version ", info->abi,
                     " of the plug-in interface; this program has version ",
                     kPluginAbi, ": build it with this Baton"));
  }
  if (std::string_view(info->baton) != kVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("built with Baton ", info->baton,
                     "; this program is Baton ", kVersion));
  }
  if (std::string_view(info->compiler) != internal::kPluginCompiler) {
    return absl::FailedPreconditionError(
        absl::StrCat("built by ", info->compiler, "; this program by ",
                     internal::kPluginCompiler));
  }
  if (info->layout != internal::PluginLayout()) {
    return absl::FailedPreconditionError(
        "built with flags, or versions of libraries, with which the types of "
        "Baton look different than in this program");
  }
  if (info->add == nullptr) {
    return absl::InvalidArgumentError(
        "it names no function to add its exports");
  }
  return absl::OkStatus();
}

absl::Status Load(const std::string& path, Registry& registry) {
  RETURN_IF_ERROR(registry.status());
  ASSIGN_OR_RETURN(const EntryPoint entry, Open(path));
  const PluginInfo* info = entry();
  RETURN_IF_ERROR(CheckFits(info));
  RETURN_IF_ERROR(CatchErrors([&] { info->add(registry); }));
  return registry.status();
}

}  // namespace

absl::Status LoadPlugin(const std::string& path, Registry& registry) {
  return Annotate(Load(path, registry), absl::StrCat("plug-in ", path));
}

}  // namespace baton::rpc
