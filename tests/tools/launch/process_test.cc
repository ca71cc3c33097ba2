// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/launch/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace baton::tools {
namespace {

using ::testing::HasSubstr;

ProcessSpec Shell(const std::string& script) {
  ProcessSpec spec;
  spec.name = "shell";
  spec.args = {"/bin/sh", "-c", script};
  spec.capture_output = true;
  return spec;
}

// What the process prints until it closes its output.
std::string OutputOf(const ProcessSpec& spec) {
  auto process = StartProcess(spec);
  if (!process.ok()) return process.status().ToString();
  ::fcntl(process->output, F_SETFL, 0);
  std::string text;
  char buffer[256];
  ssize_t n;
  while ((n = ::read(process->output, buffer, sizeof(buffer))) > 0)
    text.append(buffer, static_cast<size_t>(n));
  ::close(process->output);
  ::waitpid(process->pid, nullptr, 0);
  return text;
}

TEST(StartProcess, CapturesBothOutputs) {
  EXPECT_EQ(OutputOf(Shell("echo one; echo two >&2")), "one\ntwo\n");
}

TEST(StartProcess, AddsToTheEnvironment) {
  ProcessSpec spec = Shell("echo $BATON_TEST_A $HOME");
  spec.environment = {{"BATON_TEST_A", "x"}, {"HOME", "/nowhere"}};
  EXPECT_EQ(OutputOf(spec), "x /nowhere\n");
}

TEST(StartProcess, PinsToCores) {
  const std::vector<int> allowed = AllowedCores();
  ASSERT_FALSE(allowed.empty());
  ProcessSpec spec = Shell("exec nproc");
  spec.environment = {{"OMP_NUM_THREADS", ""}};
  spec.cores = {allowed.back()};
  EXPECT_EQ(OutputOf(spec), "1\n");
}

TEST(StartProcess, SaysWhichProgramCannotBeRun) {
  ProcessSpec spec = Shell("");
  spec.args = {"/no/such/program"};
  auto process = StartProcess(spec);
  EXPECT_EQ(process.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(process.status().message()),
              HasSubstr("cannot run /no/such/program"));
}

TEST(DivideCores, GivesEachItsOwnAndRefusesTooMany) {
  const int all = static_cast<int>(AllowedCores().size());
  auto groups = DivideCores(all, 1);
  ASSERT_TRUE(groups.ok());
  EXPECT_EQ(static_cast<int>(groups->size()), all);
  EXPECT_EQ(groups->front(), std::vector<int>{AllowedCores().front()});
  EXPECT_EQ(DivideCores(all + 1, 1).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace baton::tools
