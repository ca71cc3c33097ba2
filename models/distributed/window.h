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

// What another worker needs to open a window. It can be used only on the same
// machine and, for memory of the CPU, only by the same user. Plain data.
struct WindowHandle {
  std::string machine;
  int64_t process = 0;
  uint64_t bytes = 0;
  uint64_t proof = 0;  // the contents of the window's first word
  // On the CPU: a file descriptor of the process, and the file that it refers
  // to.
  int32_t descriptor = -1;
  uint64_t file = 0;
  // On a GPU: the handle and offset of CUDA IPC.
  std::string segment;
  uint64_t offset = 0;
  std::string gpu;  // the GPU's UUID (cuda::UuidOf)

  bool on_gpu() const { return !segment.empty(); }
  // Returns true if this process made the window.
  bool is_own() const;
  // Returns true if the window is on the GPU that this process calls `device`.
  bool IsOn(Device device) const;
  static constexpr auto Fields() {
    return std::tuple{
        &WindowHandle::machine, &WindowHandle::process,    &WindowHandle::bytes,
        &WindowHandle::proof,   &WindowHandle::descriptor, &WindowHandle::file,
        &WindowHandle::segment, &WindowHandle::offset,     &WindowHandle::gpu};
  }
};

// Memory of one worker that one other worker, in another process of the same
// machine, opens once and then writes directly: by CUDA IPC on a GPU, as an
// unnamed file on the CPU. The maker must not drop the window before the other
// worker has stopped writing. For the opener it stays valid even if the maker
// goes away. Thread-compatible.
class Window {
 public:
  // Reserved bytes at the front of the memory.
  static constexpr size_t kFront = 64;

  // Makes a window that is filled with zeros. Returns ResourceExhausted if
  // there is no memory and Unavailable if it cannot be shared.
  static absl::StatusOr<Window> Make(Device device, size_t bytes);
  // Opens a window for use on `device`. Unavailable says why it cannot be: it
  // is on another machine, the GPU cannot reach it, or it is GPU memory of this
  // same process.
  static absl::StatusOr<Window> Open(const WindowHandle& handle, Device device);
  Window(Window&&) = default;
  Window& operator=(Window&&) = delete;
  ~Window();

  // For the maker.
  const WindowHandle& handle() const { return handle_; }
  // For the maker, after the other worker has opened the window: returns
  // Unavailable unless the opener's write has arrived here.
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
  std::shared_ptr<void> opened_;         // on a GPU, memory of another process
  void* shared_ = nullptr;  // the segment that was exported by CUDA IPC
  std::shared_ptr<Storage> storage_;
};

}  // namespace baton::dist
