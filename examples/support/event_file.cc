// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/event_file.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status.h"
#include "examples/support/event.pb.h"

namespace baton::examples {
namespace {

constexpr char kVersion[] = "brain.Event:2";
constexpr uint32_t kPolynomial = 0x82f63b78;  // its bits in reverse order
constexpr uint32_t kMask = 0xa282ead8;

// Returns the remainder for each value of a byte.
constexpr std::array<uint32_t, 256> Remainders() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit)
      rest = (rest >> 1) ^ ((rest & 1) != 0 ? kPolynomial : 0);
    table[byte] = rest;
  }
  return table;
}

// Returns the bytes of a number, the lowest one first on every machine.
template <typename T>
std::string Bytes(T number) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(T); ++i)
    bytes.push_back(static_cast<char>(number >> (8 * i) & 0xff));
  return bytes;
}

double SecondsSince1970() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// TensorBoard requires "tfevents" in the name, and reads files in the order of
// their names.
std::string NewName() {
  static std::atomic<int> made{0};
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"localhost"};
  return absl::StrFormat("events.out.tfevents.%010d.%s.%d.%d",
                         static_cast<int64_t>(SecondsSince1970()), host.data(),
                         ::getpid(), made++);
}

}  // namespace

uint32_t MaskedCrc32c(absl::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kRemainders = Remainders();
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes)
    crc = kRemainders[(crc ^ static_cast<uint8_t>(byte)) & 0xff] ^ (crc >> 8);
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + kMask;
}

absl::StatusOr<std::unique_ptr<EventFile>> EventFile::Make(
    const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat("cannot make ", folder));
  }
  std::string path = absl::StrCat(folder, "/", NewName());
  std::FILE* file = std::fopen(path.c_str(), "wbe");
  if (file == nullptr)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  std::unique_ptr<EventFile> made(new EventFile(std::move(path), file));
  Event first;
  first.set_wall_time(SecondsSince1970());
  first.set_file_version(kVersion);
  RETURN_IF_ERROR(made->Write(first.SerializeAsString()));
  return made;
}

EventFile::EventFile(std::string path, std::FILE* file)
    : path_(std::move(path)), file_(file) {}

EventFile::~EventFile() { std::fclose(file_); }

absl::Status EventFile::Add(int64_t step, const std::vector<Scalar>& scalars) {
  Event event;
  event.set_wall_time(SecondsSince1970());
  event.set_step(step);
  for (const Scalar& scalar : scalars) {
    Scalars::Value* value = event.mutable_summary()->add_value();
    value->set_tag(scalar.tag);
    value->set_simple_value(static_cast<float>(scalar.value));
  }
  return Write(event.SerializeAsString());
}

absl::Status EventFile::Write(absl::string_view event) {
  const std::string length = Bytes(uint64_t{event.size()});
  const std::string record = absl::StrCat(length, Bytes(MaskedCrc32c(length)),
                                          event, Bytes(MaskedCrc32c(event)));
  if (std::fwrite(record.data(), 1, record.size(), file_) == record.size() &&
      std::fflush(file_) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path_));
}

}  // namespace baton::examples
