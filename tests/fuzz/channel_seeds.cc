// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What the channels for tensors and the rings for messages read.

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/tensor.h"
#include "rpc/transports/framing.h"
#include "rpc/wire.pb.h"
#include "tests/fuzz/seeds.h"

namespace baton::fuzz {
namespace {

namespace wire = rpc::wire;

std::string SharedControl(const wire::SharedMemoryControl& control) {
  wire::ChannelFrame frame;
  auto* said = frame.add_said();
  said->set_channel(1);
  said->set_payload(control.SerializeAsString());
  return '\2' + Chunk(frame.SerializeAsString());
}

// A frame of a message with one tensor of 40 kB, as SharedMemory() takes it.
std::string Ticketed(const std::string& ticket) {
  wire::MessageMeta meta;
  auto* tensor = meta.add_tensors();
  tensor->set_dtype(static_cast<uint32_t>(DType::kF32));
  tensor->add_sizes(10 << 10);
  tensor->set_channel(1);
  tensor->set_ticket(ticket);
  return '\5' + Chunk(rpc::MetaBytes(rpc::FrameKind::kMessage,
                                     meta.SerializeAsString()));
}

// Steps as SharedMemory() takes them.
void SharedMemory() {
  // Each side passes a segment, maps the other's and says so.
  const std::string opened("\1\0\1\0\1\0", 6);
  Save("shared_memory", "both_send",
       opened + std::string("\3\50\4\50\6\0\7\0\0\1\3\24\4\24", 14));
  // More than the first segment holds: a second one is passed.
  Save("shared_memory", "grows",
       opened + std::string("\3\170\0\1\0\3\170\4\170\1\0\1\4\170", 14));
  wire::SharedMemoryTicket ticket;
  ticket.set_segment(1);
  ticket.set_bytes(40 << 10);
  ticket.set_lease(77);
  const std::string good = Ticketed(ticket.SerializeAsString());
  ticket.set_offset(64 << 10);
  ticket.set_lease(78);
  Save("shared_memory", "tickets",
       opened + good + std::string("\6\0", 2) +
           Ticketed(ticket.SerializeAsString()));
  wire::SharedMemoryControl control;
  control.mutable_passed()->set_segment(2);
  control.mutable_passed()->set_bytes(64 << 10);
  const std::string passed = SharedControl(control);
  control.mutable_mapped()->set_segment(1);
  const std::string mapped = SharedControl(control);
  control.set_failed("no memory");
  Save("shared_memory", "words", mapped + passed + SharedControl(control));
  for (int stray = 0; stray < 3; ++stray) {
    Save("shared_memory", absl::StrCat("stray_", stray),
         opened + '\10' + static_cast<char>(stray) + passed);
  }
  wire::ChannelFrame frame;
  auto* released = frame.add_released();
  released->set_channel(1);
  released->add_leases(1);
  const std::string twice = '\2' + Chunk(frame.SerializeAsString());
  Save("shared_memory", "released_twice",
       opened + std::string("\4\50", 2) + twice + twice);
}

// Steps as MessageRing() takes them: 0 writes a frame, 1 bytes, 2 anywhere in
// the memory, 3 reads.
void MessageRing() {
  const std::string small = Sent({"header", {Tensor::Zeros({2, 3})}}).substr(1);
  const std::string frame = '\0' + small;
  const std::string read(1, '\3');
  Save("message_ring", "frames", frame + frame + read + frame + read);
  Save("message_ring", "pieces",
       frame + '\1' + Chunk(std::string("\x40\0\0\0BTN1", 8)) + read + '\1' +
           Chunk(std::string(56, '\0')) + read);
  const std::string far("\xff\xff\xff\xff\xff\xff\xff\x7f", 8);
  for (const char place : {'\0', '\4', '\10', '\200'}) {
    Save("message_ring",
         absl::StrCat("spoilt_", int{static_cast<uint8_t>(place)}),
         frame + '\2' + place + Chunk(far) + read + frame + read);
  }
  Save("message_ring", "lengths",
       '\1' + Chunk(std::string("\xff\xff\xff\xff", 4)) + read);
}

void Tcp() {
  wire::TcpTicket ticket;
  ticket.set_lease(7);
  ticket.set_bytes(36);
  const std::string promise =
      std::string("\0\11", 2) + Chunk(ticket.SerializeAsString());
  const uint64_t numbers[2] = {7, 36};
  const std::string head(reinterpret_cast<const char*>(numbers),
                         sizeof(numbers));
  const std::string elements(36, 'e');
  const auto write = [](const std::string& bytes) {
    return '\1' + Chunk(bytes);
  };
  Save("tcp", "whole", promise + write(head + elements));
  Save("tcp", "twice",
       promise + write(head + elements + head) + promise + write(elements));
  Save("tcp", "early", write(head + elements) + promise);
  Save("tcp", "pieces",
       promise + write(head.substr(0, 3)) + write(head.substr(3)) +
           write(elements.substr(0, 30)) + write(elements.substr(30)));
  Save("tcp", "other_size", promise + write(elements));
  Save("tcp", "unasked", write(elements + head) + promise + promise);
}

}  // namespace

void SaveChannelSeeds() {
  SharedMemory();
  MessageRing();
  Tcp();
}

}  // namespace baton::fuzz
