// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// This program's versions of the POSIX calls by which Baton's threads start,
// wait, read clocks and write files. They replace those of the C library, also
// for the C++ library. While no simulation runs, they behave as the originals.

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "tests/sim/disk.h"
#include "tests/sim/real.h"
#include "tests/sim/world.h"

namespace baton::sim {
namespace {

template <typename Function>
Function* Find(Function*& known, const char* name) {
  if (known == nullptr) {
    known = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  }
  return known;
}

// The C library's version of the function that is being defined.
#define BATON_SIM_REAL(name)                \
  ([] {                                     \
    static decltype(name)* known = nullptr; \
    return baton::sim::Find(known, #name);  \
  }())

constexpr int64_t kSecond = 1'000'000'000;
// When the clocks begin: some time after the machine's start, and in 2023.
constexpr int64_t kSteadyStart = 1'000 * kSecond;
constexpr int64_t kSystemStart = 1'700'000'000 * kSecond;

constexpr int kCores = 2;

int64_t StartOf(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE
             ? kSystemStart
             : kSteadyStart;
}

Nanos Until(clockid_t clock, const timespec& time) {
  const int64_t when = time.tv_sec * kSecond + time.tv_nsec - StartOf(clock);
  return std::max(Nanos(when) - World::Get().now(), Nanos(0));
}

bool Simulated() { return World::Get().active(); }

}  // namespace

namespace real {

int CreateThread(pthread_t* id, const pthread_attr_t* attributes,
                 void* (*start)(void*), void* argument) {
  return BATON_SIM_REAL(pthread_create)(id, attributes, start, argument);
}
int Join(pthread_t id, void** result) {
  return BATON_SIM_REAL(pthread_join)(id, result);
}
int Unlock(pthread_mutex_t* mutex) {
  return BATON_SIM_REAL(pthread_mutex_unlock)(mutex);
}
int Rename(const char* from, const char* to) {
  return static_cast<int>(syscall(SYS_rename, from, to));
}
int64_t NowNanos() {
  timespec time{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

}  // namespace real
}  // namespace baton::sim

using baton::sim::Disk;
using baton::sim::Nanos;
using baton::sim::Simulated;
using baton::sim::World;

extern "C" {

int pthread_create(pthread_t* id, const pthread_attr_t* attributes,
                   void* (*start)(void*), void* argument) noexcept {
  if (!Simulated()) {
    return baton::sim::real::CreateThread(id, attributes, start, argument);
  }
  return World::Get().CreateThread(id, attributes, start, argument);
}

int pthread_join(pthread_t id, void** result) {
  if (Simulated()) World::Get().AwaitEnd(id);
  return baton::sim::real::Join(id, result);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  if (!Simulated()) {
    return BATON_SIM_REAL(pthread_mutex_lock)(mutex);
  }
  World::Get().Lock(mutex);
  return 0;
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  if (!Simulated()) return baton::sim::real::Unlock(mutex);
  World::Get().Unlock(mutex);
  return 0;
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  if (!Simulated()) {
    return BATON_SIM_REAL(pthread_cond_wait)(condition, mutex);
  }
  return World::Get().WaitCondition(condition, mutex, Nanos(-1));
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           clockid_t clock, const timespec* until) {
  if (!Simulated()) {
    return BATON_SIM_REAL(pthread_cond_clockwait)(condition, mutex, clock,
                                                  until);
  }
  return World::Get().WaitCondition(condition, mutex,
                                    baton::sim::Until(clock, *until));
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* until) {
  if (!Simulated()) {
    return BATON_SIM_REAL(pthread_cond_timedwait)(condition, mutex, until);
  }
  return World::Get().WaitCondition(condition, mutex,
                                    baton::sim::Until(CLOCK_REALTIME, *until));
}

int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  if (!Simulated()) return BATON_SIM_REAL(pthread_cond_signal)(condition);
  World::Get().Wake(condition, false);
  return 0;
}

int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  if (!Simulated()) return BATON_SIM_REAL(pthread_cond_broadcast)(condition);
  World::Get().Wake(condition, true);
  return 0;
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (!Simulated()) {
    return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  }
  const int64_t now =
      World::Get().ReadClock().count() + baton::sim::StartOf(clock);
  time->tv_sec = now / baton::sim::kSecond;
  time->tv_nsec = now % baton::sim::kSecond;
  return 0;
}

int nanosleep(const timespec* length, timespec* left) {
  if (!Simulated()) {
    return static_cast<int>(syscall(SYS_nanosleep, length, left));
  }
  World::Get().Sleep(
      Nanos(length->tv_sec * baton::sim::kSecond + length->tv_nsec));
  return 0;
}

int sched_yield() noexcept {
  if (!Simulated()) return static_cast<int>(syscall(SYS_sched_yield));
  World::Get().Sleep(Nanos(1000));
  return 0;
}

ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
  if (Simulated()) bytes = Disk::Get().Write(file, bytes);
  return syscall(SYS_pwrite64, file, data, bytes, offset);
}

int fsync(int file) {
  if (!Simulated()) return static_cast<int>(syscall(SYS_fsync, file));
  Disk::Get().Flush(file);
  return 0;
}

// Returns the same cores on every machine, so that a seed runs in the same way.
int sched_getaffinity(pid_t /*thread*/, size_t bytes,
                      cpu_set_t* cores) noexcept {
  CPU_ZERO_S(bytes, cores);
  for (int core = 0; core < baton::sim::kCores; ++core)
    CPU_SET_S(static_cast<size_t>(core), bytes, cores);
  return 0;
}
int get_nprocs() noexcept { return baton::sim::kCores; }

int rename(const char* from, const char* to) noexcept {
  const int error = baton::sim::real::Rename(from, to);
  if (error == 0 && Simulated()) Disk::Get().Rename(from, to);
  return error;
}

}  // extern "C"
