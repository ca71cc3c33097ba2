// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/plugin.h"

#include <dlfcn.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/rpc/plugin/scale.h"
#include "tests/support/local_cluster.h"
#include "tests/support/program_path.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_files.h"

namespace baton::rpc {
namespace {

using absl::StatusCode;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

std::string PathOf(const std::string& plugin) {
  return testing::ProgramPath("plugins/lib" + plugin + ".so");
}

struct Refused {
  const char* plugin;
  StatusCode code;
  const char* says;
};

TEST(Plugin, AddsWhatItExports) {
  Registry registry;
  ASSERT_EQ(LoadPlugin(PathOf("scale"), registry), absl::OkStatus());
  EXPECT_THAT(registry.MethodNames(), Contains("Scale::Apply"));
  const auto method = registry.Find({internal::TypeId<plugin::Scale>(), 1});
  ASSERT_TRUE(method.ok());
  // The code is the plug-in's, not a copy that this program has.
  Dl_info place{};
  ASSERT_NE(::dladdr(reinterpret_cast<void*>((*method)->handler), &place), 0);
  EXPECT_THAT(place.dli_fname, HasSubstr("libscale.so"));
}

TEST(Plugin, ItsObjectsServeCalls) {
  testing::LocalCluster cluster({.fill = [](Registry& registry) {
    ASSERT_EQ(LoadPlugin(PathOf("scale"), registry), absl::OkStatus());
  }});
  // Called by its wire name, as a trainer that has the class compiled in would.
  const auto method = internal::MethodKey{internal::TypeId<plugin::Scale>(), 0};
  const auto handle = internal::NewResultHandle(
      cluster["alice"].core(), "bob",
      internal::ValueType{internal::TypeId<plugin::Scale>(),
                          &internal::TypeName<plugin::Scale>, nullptr});
  auto call = internal::BeginCall({.agent = cluster["alice"].core(),
                                   .to = "bob",
                                   .method = method,
                                   .name = "Scale::Make",
                                   .object = nullptr,
                                   .result = handle},
                                  internal::FinishHandle(handle));
  internal::SendCall(call, [](Encoder& encoder) { encoder.Put(3.0f); });
  ASSERT_EQ(internal::CreationOf(handle).Await(), absl::OkStatus());
  Promise<Tensor> result;
  call = internal::BeginCall(
      internal::SpecFor(handle, {method.type, 1}, "Scale::Apply"),
      internal::SetPromise<Tensor>(result));
  internal::SendCall(call, [](Encoder& encoder) {
    encoder.Put(Tensor::From<float>({1, 2}));
  });
  const auto scaled = result.future().Await();
  ASSERT_TRUE(scaled.ok()) << scaled.status();
  EXPECT_EQ(scaled->ToVector<float>(), (std::vector<float>{3, 6}));
}

TEST(Plugin, SeveralGiveTheDigestOfOneRegistryWithAll) {
  Registry one, other, none;
  ASSERT_EQ(LoadPlugin(PathOf("scale"), one), absl::OkStatus());
  ASSERT_EQ(LoadPlugin(PathOf("shift"), one), absl::OkStatus());
  ASSERT_EQ(LoadPlugin(PathOf("shift"), other), absl::OkStatus());
  EXPECT_NE(one.Digest(), other.Digest());
  EXPECT_NE(other.Digest(), none.Digest());
  ASSERT_EQ(LoadPlugin(PathOf("scale"), other), absl::OkStatus());
  EXPECT_EQ(one.Digest(), other.Digest());
}

TEST(Plugin, WhatIsWrongIsSaidInOneLineThatNamesTheFile) {
  const Refused all[] = {
      {"nowhere", StatusCode::kNotFound, "no such file"},
      {"no_entry", StatusCode::kInvalidArgument, "BATON_PLUGIN"},
      {"missing_symbol", StatusCode::kInvalidArgument, "NobodyHasThis"},
      {"no_function", StatusCode::kInvalidArgument, "no function"},
      {"later_abi", StatusCode::kFailedPrecondition, "made for version 2"},
      {"other_version", StatusCode::kFailedPrecondition,
       "built with Baton 0.0.9; this program is Baton "},
      {"other_compiler", StatusCode::kFailedPrecondition, "built by icc"},
      {"other_layout", StatusCode::kFailedPrecondition, "look different"},
      {"throwing", StatusCode::kInvalidArgument, "no weights found"},
  };
  for (const Refused& expected : all) {
    Registry registry;
    const Registry before = registry;
    const absl::Status status = LoadPlugin(PathOf(expected.plugin), registry);
    EXPECT_EQ(status.code(), expected.code) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("plug-in "), HasSubstr(expected.plugin),
                      HasSubstr(expected.says)));
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << status;
    EXPECT_EQ(registry.Digest(), before.Digest());
  }
}

TEST(Plugin, AFileThatIsNoLibraryIsRefused) {
  const testing::TempFolder folder;
  Registry registry;
  const absl::Status status =
      LoadPlugin(folder.Write("text.so", "not a library"), registry);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
}

TEST(Plugin, AFileThatIsNotThereIsNotFound) {
  Registry registry;
  const absl::Status status = LoadPlugin("./libnowhere_at_all.so", registry);
  EXPECT_EQ(status.code(), StatusCode::kNotFound) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("libnowhere_at_all.so"));
}

// Whoever may write to the present folder would choose what is run.
TEST(Plugin, ANameIsNotSearchedFor) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(
      std::filesystem::path(PathOf("scale")).parent_path());
  Registry registry;
  const absl::Status status = LoadPlugin("libscale.so", registry);
  std::filesystem::current_path(before);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("./libscale.so"));
}

TEST(Plugin, WhatIsExportedTwiceIsNamed) {
  Registry registry;
  ASSERT_EQ(LoadPlugin(PathOf("scale"), registry), absl::OkStatus());
  const absl::Status status = LoadPlugin(PathOf("scale"), registry);
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("libscale.so"), HasSubstr("Scale is registered twice")));
}

}  // namespace
}  // namespace baton::rpc
