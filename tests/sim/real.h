// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <pthread.h>

#include <cstdint>

// The calls of POSIX without a simulation.
namespace baton::sim::real {

int CreateThread(pthread_t* id, const pthread_attr_t* attributes,
                 void* (*start)(void*), void* argument);
int Join(pthread_t id, void** result);
int Unlock(pthread_mutex_t* mutex);
int Rename(const char* from, const char* to);
int64_t NowNanos();  // of the steady clock

}  // namespace baton::sim::real
