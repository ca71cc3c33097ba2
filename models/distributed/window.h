// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/device.h"
#include "core/storage.h"
#include "rpc/channels/segment.h"

namespace baton::dist {

// What another worker opens a window by. Of use on the same machine alone, and
// on the CPU for the same user. Plain data.
struct WindowHandle {
  std::string machine;
  int64_t process = 0;
  uint64_t bytes = 0;
  uint64_t proof = 0;  // what its first word says
  // On the CPU: a descriptor of the process, and the file that it is of.
  int32_t descriptor = -1;
  uint64_t file = 0;
  // On a GPU: of CUDA IPC.
  std::string segment;
  uint64_t offset = 0;
  std::string gpu;  // which it is (cuda::UuidOf)

  bool on_gpu() const { return !segment.empty(); }
  // Made by this process.
  bool is_own() const;
  // The GPU that this process calls so has it.
  bool IsOn(Device device) const;
  static constexpr auto Fields() {
    return std::tuple{
        &WindowHandle::machine, &WindowHandle::process,    &WindowHandle::bytes,
        &WindowHandle::proof,   &WindowHandle::descriptor, &WindowHandle::file,
        &WindowHandle::segment, &WindowHandle::offset,     &WindowHandle::gpu};
  }
};

// Memory of one worker that one other worker, in another process of the
// machine, opens once and then writes as its own: of a GPU by CUDA IPC, of the
// CPU as a file without a name. Whoever made it drops it only when the other
// writes no more; it stays valid for whoever opened it, whatever becomes of its
// maker. Thread-compatible.
class Window {
 public:
  // Bytes at the front that are not for users.
  static constexpr size_t kFront = 64;

  // Zeros. ResourceExhausted where there is no memory; Unavailable where it
  // cannot be shared.
  static absl::StatusOr<Window> Make(Device device, size_t bytes);
  // As `device` sees it. Unavailable says why it does not: another machine, a
  // GPU out of reach, a GPU's window of this process itself.
  static absl::StatusOr<Window> Open(const WindowHandle& handle, Device device);
  Window(Window&&) = default;
  Window& operator=(Window&&) = delete;
  ~Window();

  // Of the maker.
  const WindowHandle& handle() const { return handle_; }
  // Of the maker, once the other has opened it: Unavailable unless what the
  // other wrote then has arrived.
  absl::Status CheckOpened() const;

  const std::shared_ptr<Storage>& storage() const { return storage_; }

 private:
  Window() = default;
  absl::Status MakeOnCpu(size_t bytes);
  absl::Status MakeOnGpu(Device device, size_t bytes);
  absl::Status OpenOnCpu();
  absl::Status OpenOnGpu(Device device);
  uint64_t Word(int which) const;
  void SetWord(int which, uint64_t value) const;

  WindowHandle handle_;
  std::optional<rpc::Segment> segment_;  // on the CPU
  std::shared_ptr<void> opened_;         // another process's, on a GPU
  void* shared_ = nullptr;  // the segment that was made known there
  std::shared_ptr<Storage> storage_;
};

}  // namespace baton::dist
