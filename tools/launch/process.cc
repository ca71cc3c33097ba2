// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/launch/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::tools {
namespace {

struct Pipe {
  int read = -1;
  int write = -1;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return absl::ErrnoToStatus(errno, "cannot make a pipe");
  return Pipe{ends[0], ends[1]};
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> Environment(
    const std::map<std::string, std::string>& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) all.push_back(text);
  }
  for (const auto& [name, value] : added)
    all.push_back(absl::StrCat(name, "=", value));
  return all;
}

// Everything that the child needs is prepared before the fork: afterwards, in a
// process that may have threads, only async-signal-safe calls are allowed.
struct Plan {
  std::vector<std::string> args;
  std::vector<std::string> environment;
  std::vector<char*> arg_pointers;
  std::vector<char*> environment_pointers;
  cpu_set_t cores;
  bool pin = false;
  bool own_group = false;
  pid_t parent = 0;
  Pipe output;  // -1: not captured
  Pipe failure;
};

[[noreturn]] void RunChild(const Plan& plan) {
  const auto fail = [&] {
    const int error = errno;
    [[maybe_unused]] ssize_t n =
        ::write(plan.failure.write, &error, sizeof(error));
    ::_exit(127);
  };
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail();
  if (::getppid() != plan.parent) ::_exit(127);  // the parent has ended already
  if (plan.own_group) ::setpgid(0, 0);
  if (plan.pin && ::sched_setaffinity(0, sizeof(plan.cores), &plan.cores) != 0)
    fail();
  if (plan.output.write >= 0) {
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || ::dup2(null, 0) < 0) fail();
    if (::dup2(plan.output.write, 1) < 0) fail();
    if (::dup2(plan.output.write, 2) < 0) fail();
  }
  for (int signal : {SIGPIPE, SIGINT, SIGTERM}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvpe(plan.arg_pointers[0], plan.arg_pointers.data(),
            plan.environment_pointers.data());
  fail();
  ::_exit(127);
}

// Waits until the child runs its program or reports why it cannot.
absl::Status ReadFailure(const Pipe& failure, const ProcessSpec& spec) {
  ::close(failure.write);
  int error = 0;
  ssize_t n;
  do {
    n = ::read(failure.read, &error, sizeof(error));
  } while (n < 0 && errno == EINTR);
  ::close(failure.read);
  if (n != sizeof(error)) return absl::OkStatus();
  return absl::ErrnoToStatus(error, absl::StrCat("cannot run ", spec.args[0]));
}

absl::StatusOr<Plan> MakePlan(const ProcessSpec& spec) {
  Plan plan;
  plan.args = spec.args;
  plan.environment = Environment(spec.environment);
  plan.own_group = spec.own_group;
  plan.parent = ::getpid();
  plan.pin = !spec.cores.empty();
  CPU_ZERO(&plan.cores);
  for (int core : spec.cores) CPU_SET(core, &plan.cores);
  ASSIGN_OR_RETURN(plan.failure, MakePipe());
  if (spec.capture_output) {
    ASSIGN_OR_RETURN(plan.output, MakePipe());
    ::fcntl(plan.output.read, F_SETFL, O_NONBLOCK);
  }
  return plan;
}

}  // namespace

absl::StatusOr<Process> StartProcess(const ProcessSpec& spec) {
  ASSIGN_OR_RETURN(Plan plan, MakePlan(spec));
  plan.arg_pointers = Pointers(plan.args);
  plan.environment_pointers = Pointers(plan.environment);
  const pid_t pid = ::fork();
  if (pid == 0) RunChild(plan);
  const int error = errno;
  if (plan.output.write >= 0) ::close(plan.output.write);
  absl::Status started =
      pid > 0 ? ReadFailure(plan.failure, spec)
              : absl::ErrnoToStatus(
                    error, absl::StrCat("cannot start ", spec.args[0]));
  if (!started.ok()) {
    if (plan.output.read >= 0) ::close(plan.output.read);
    if (pid > 0) ::waitpid(pid, nullptr, 0);
    return started;
  }
  return Process{spec.name, pid, plan.output.read, spec.own_group};
}

void SendSignal(const Process& process, int signal) {
  ::kill(process.own_group ? -process.pid : process.pid, signal);
}

std::string HowItEnded(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return absl::StrCat("was killed by signal ", WTERMSIG(wait_status), " (",
                        strsignal(WTERMSIG(wait_status)), ")");
  }
  return absl::StrCat("ended with code ", WEXITSTATUS(wait_status));
}

int ExitCodeOf(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status)
                                  : WEXITSTATUS(wait_status);
}

std::vector<int> AllowedCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

absl::StatusOr<std::vector<std::vector<int>>> DivideCores(int count, int size) {
  const std::vector<int> cores = AllowedCores();
  const int64_t needed = int64_t{count} * size;
  if (needed > static_cast<int64_t>(cores.size())) {
    return absl::ResourceExhaustedError(
        absl::StrCat(count, " workers of ", size, " cores need ", needed,
                     " cores, and only ", cores.size(), " may be used here"));
  }
  std::vector<std::vector<int>> groups;
  for (int i = 0; i < count; ++i) {
    groups.emplace_back(cores.begin() + i * size,
                        cores.begin() + (i + 1) * size);
  }
  return groups;
}

}  // namespace baton::tools
