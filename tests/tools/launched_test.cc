// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/launched.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "tools/cluster_flags.h"

ABSL_DECLARE_FLAG(std::string, device);
ABSL_DECLARE_FLAG(std::string, rendezvous);
ABSL_DECLARE_FLAG(std::string, name);

namespace baton::tools {
namespace {

using ::testing::HasSubstr;

// These variables of the environment while it lives, and no others of
// launchers.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& set) {
    for (const char* name :
         {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
          "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK", "PMI_SIZE",
          "MPI_LOCALRANKID", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID",
          "BATON_NAME", "BATON_WORLD_SIZE", "BATON_RENDEZVOUS",
          "BATON_PEERS"}) {
      const char* value = std::getenv(name);
      if (value != nullptr) former_[name] = value;
      ::unsetenv(name);
    }
    for (const auto& [name, value] : set) {
      ::setenv(name.c_str(), value.c_str(), 1);
      set_.push_back(name);
    }
  }
  ~Environment() {
    for (const std::string& name : set_) ::unsetenv(name.c_str());
    for (const auto& [name, value] : former_)
      ::setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::map<std::string, std::string> former_;
  std::vector<std::string> set_;
};

TEST(Launched, EachLauncherSaysWhichOfHowManyThisIs) {
  for (const std::string by : {"OMPI_COMM_WORLD_", "PMI_"}) {
    const Environment environment({{by + "RANK", "2"}, {by + "SIZE", "4"}});
    const auto launched = LaunchedByOthers();
    ASSERT_TRUE(launched.ok()) << launched.status();
    ASSERT_TRUE(launched->has_value());
    EXPECT_EQ((*launched)->rank, 2);
    EXPECT_EQ((*launched)->size, 4);
    EXPECT_EQ((*launched)->by, by + "RANK");
  }
  const Environment srun({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}});
  EXPECT_TRUE(LaunchedByOthers()->has_value());
  const Environment none({});
  EXPECT_FALSE(LaunchedByOthers()->has_value());
}

TEST(Launched, WhatIsNoRankIsAnError) {
  const Environment environment({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}});
  EXPECT_THAT(
      std::string(LaunchedByOthers().status().message()),
      HasSubstr("PMI_RANK=4 and PMI_SIZE=4 are not a rank and a number of "
                "ranks"));
}

// The device that --device=`list` means to a process with these variables, on a
// machine with two GPUs.
std::string DeviceAmongTwo(std::map<std::string, std::string> set,
                           const std::string& list) {
  const Environment environment(set);
  const auto launched = LaunchedByOthers();
  if (!launched.ok()) return std::string(launched.status().message());
  const auto device = DeviceOf(launched->value(), list, 2);
  return device.ok() ? *device : std::string(device.status().message());
}

TEST(Launched, RanksOfOneMachineHaveItsGpusInTurn) {
  const std::vector<std::vector<std::string>> launchers = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
       "OMPI_COMM_WORLD_LOCAL_RANK"},
      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
      {"PMI_RANK", "PMI_SIZE", "SLURM_LOCALID"},
      {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"}};
  for (const auto& names : launchers) {
    for (int local = 0; local < 4; ++local) {
      const std::map<std::string, std::string> set = {
          {names[0], std::to_string(4 + local)},
          {names[1], "8"},
          {names[2], std::to_string(local)}};
      EXPECT_EQ(DeviceAmongTwo(set, "cuda"),
                "cuda:" + std::to_string(local % 2))
          << names[2];
      EXPECT_EQ(DeviceAmongTwo(set, "cpu"), "cpu");
      EXPECT_EQ(DeviceAmongTwo(set, "cuda:1"), "cuda:1");
    }
  }
}

// mpirun in a script of Slurm's.
TEST(Launched, TheLauncherItselfTellsTheLocalRank) {
  std::map<std::string, std::string> set = {{"SLURM_PROCID", "0"},
                                            {"SLURM_NTASKS", "1"},
                                            {"SLURM_LOCALID", "0"},
                                            {"OMPI_COMM_WORLD_RANK", "1"},
                                            {"OMPI_COMM_WORLD_SIZE", "2"}};
  EXPECT_EQ(DeviceAmongTwo(set, "cuda"), "cuda");  // it tells none
  set["OMPI_COMM_WORLD_LOCAL_RANK"] = "1";
  EXPECT_EQ(DeviceAmongTwo(set, "cuda"), "cuda:1");
  set["OMPI_COMM_WORLD_LOCAL_RANK"] = "one";
  EXPECT_THAT(DeviceAmongTwo(set, "cuda"),
              HasSubstr("OMPI_COMM_WORLD_LOCAL_RANK=one is no rank"));
}

TEST(Launched, AProgramTakesTheDeviceOfItsLocalRank) {
  const absl::FlagSaver saver;
  absl::SetFlag(&FLAGS_rendezvous, "127.0.0.1:4001");
  absl::SetFlag(&FLAGS_device, "cuda:0,cpu");
  const Environment environment(
      {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}});
  const auto options = ClusterOptionsFromFlags("trainer");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->device.is_cpu());
}

// Of one of three processes that others launched.
rpc::ClusterOptions OptionsOfRank(int rank) {
  const Environment environment(
      {{"PMI_RANK", std::to_string(rank)}, {"PMI_SIZE", "3"}});
  auto options = ClusterOptionsFromFlags("trainer");
  EXPECT_TRUE(options.ok()) << options.status();
  if (!options.ok()) return {};
  EXPECT_EQ(options->name, rank == 0 ? "trainer" : "worker2");
  EXPECT_EQ(options->rank, rank);
  return *std::move(options);
}

TEST(Launched, RankZeroIsTheTrainerAndHostsTheRendezvous) {
  const absl::FlagSaver saver;
  absl::SetFlag(&FLAGS_rendezvous, "127.0.0.1:4001");
  for (const int rank : {0, 2}) {
    const rpc::ClusterOptions options = OptionsOfRank(rank);
    EXPECT_EQ(options.world_size, 3);
    EXPECT_EQ(options.rendezvous_host, "trainer");
    EXPECT_EQ(options.listen, "127.0.0.1:0");
  }
}

TEST(Launched, NobodyHostsARendezvousThatEtcdKnows) {
  const absl::FlagSaver saver;
  absl::SetFlag(&FLAGS_rendezvous, "etcd://127.0.0.1:4001,192.0.2.1:4001");
  for (const int rank : {0, 2}) {
    const rpc::ClusterOptions options = OptionsOfRank(rank);
    EXPECT_EQ(options.rendezvous_host, "");
    // Others of other machines meet there.
    EXPECT_NE(options.listen, "127.0.0.1:0");
  }
}

TEST(Launched, WithoutARendezvousTheErrorSaysWhatToGive) {
  const Environment environment({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}});
  EXPECT_THAT(
      std::string(ClusterOptionsFromFlags("trainer").status().message()),
      HasSubstr("this is rank 1 of 3 (PMI_RANK): give --rendezvous"));
}

// As in a recipe for Slurm whose workers have names and a world size.
TEST(Launched, WhoIsNamedIsNotAskedAgain) {
  const absl::FlagSaver saver;
  absl::SetFlag(&FLAGS_rendezvous, "127.0.0.1:4001");
  absl::SetFlag(&FLAGS_name, "alice");
  const Environment environment({{"SLURM_PROCID", "1"},
                                 {"SLURM_NTASKS", "3"},
                                 {"BATON_WORLD_SIZE", "5"}});
  const auto options = ClusterOptionsFromFlags("trainer");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->name, "alice");
  EXPECT_EQ(options->world_size, 5);
  EXPECT_EQ(options->rendezvous_host, "");
}

}  // namespace
}  // namespace baton::tools
