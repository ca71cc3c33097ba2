// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Writes inputs that the fuzzers begin with: fuzz_seeds tests/fuzz/corpus

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/safetensors.h"
#include "core/status.h"
#include "rpc/frames.h"
#include "rpc/rendezvous.pb.h"
#include "rpc/transports/framing.h"
#include "rpc/transports/hello.h"
#include "rpc/transports/outgoing.h"
#include "rpc/wire.pb.h"
#include "tests/models/data/made_files.h"
#include "tools/certificates.h"

namespace baton::fuzz {
namespace {

namespace fs = std::filesystem;
namespace wire = rpc::wire;
using rpc::internal::ControlFrame;
using rpc::internal::ControlKind;
using rpc::internal::EncodeFrame;
using rpc::internal::FrameKind;

fs::path corpus;

void Save(const std::string& target, const std::string& name,
          const std::string& bytes) {
  fs::create_directories(corpus / target);
  std::ofstream(corpus / target / name, std::ios::binary) << bytes;
}

// As Input::Chunk reads it.
std::string Chunk(const std::string& bytes) {
  return std::string{static_cast<char>(bytes.size()),
                     static_cast<char>(bytes.size() >> 8)} +
         bytes;
}

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  rpc::FrameReader in(buffer);
  std::string bytes(in.remaining(), '\0');
  in.Read(bytes.data(), bytes.size());
  return bytes;
}

// All gRPC messages of a message, each as Frames() takes it.
std::string Sent(rpc::Message message) {
  rpc::Transport::Sent sent = nullptr;
  const auto outgoing =
      rpc::Outgoing::Make(std::move(message), 1 << 20, sent,
                          std::make_shared<ThreadPool>(1, "seed"));
  BATON_CHECK(outgoing.ok());
  std::string all;
  for (bool done = false; !done;) {
    std::vector<grpc::Slice> slices;
    size_t budget = 20'000;
    done = rpc::Outgoing::Take(*outgoing, budget, slices);
    all += '\1';
    all += Chunk(BytesOf(grpc::ByteBuffer(slices.data(), slices.size())));
  }
  return all;
}

const rpc::WorkerInfo kAlice{"alice", rpc::Rank{0}, 1, "127.0.0.1:1;unix:/s"};
const rpc::WorkerInfo kBob{"bob", rpc::Rank{1}, 2, "127.0.0.1:2"};

std::string HelloFrame() {
  rpc::GrpcOptions options;
  options.cluster = "baton";
  options.registry_digest = "abc";
  return BytesOf(Encode(MakeHello(options, kBob, kAlice)));
}

void Wire() {
  const std::string hello = HelloFrame();
  Save("frames", "hello", '\0' + Chunk(hello));
  Save("frames", "small",
       Sent({"header", {Tensor::Zeros({2, 3}), Tensor::Full({}, 1.0)}}));
  Save(
      "frames", "types",
      Sent(
          {"",
           {Tensor::Zeros({4}, {.dtype = DType::kBool}),
            Tensor::Zeros({1, 2, 2, 2}).Contiguous(MemoryFormat::kChannelsLast),
            Tensor::Zeros({0, 5}, {.dtype = DType::kI64})}}));
  Save("frames", "chunks",
       Sent({std::string(70'000, 'h'), {Tensor::Zeros({10'000})}}));
  Save("frames", "beat",
       '\1' + Chunk(BytesOf(MetaFrame(rpc::FrameKind::kBeat, "")) +
                    BytesOf(MetaFrame(rpc::FrameKind::kGoodbye, ""))));
  const std::string meta = hello.substr(rpc::kFrameHeaderBytes);
  Save("hello", "hello", meta);
  wire::Hello endless;
  BATON_CHECK(endless.ParseFromString(meta));
  endless.set_lease_ms(INT64_MAX);
  endless.set_cluster("\x1b[2J\n");
  Save("hello", "endless_lease", endless.SerializeAsString());
  Save("hello", "answer",
       BytesOf(Encode(rpc::HelloAnswer{.self = kAlice}))
           .substr(rpc::kFrameHeaderBytes));
}

std::string SharedWords(const wire::SharedMemoryWords& words) {
  wire::ChannelFrame frame;
  auto* said = frame.add_said();
  said->set_channel(1);
  said->set_words(words.SerializeAsString());
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
  return '\5' + Chunk(BytesOf(MetaFrame(rpc::FrameKind::kMessage,
                                        meta.SerializeAsString())));
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
  wire::SharedMemoryWords words;
  words.mutable_passed()->set_segment(2);
  words.mutable_passed()->set_bytes(64 << 10);
  const std::string passed = SharedWords(words);
  words.mutable_mapped()->set_segment(1);
  const std::string mapped = SharedWords(words);
  words.set_failed("no memory");
  Save("shared_memory", "words", mapped + passed + SharedWords(words));
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

// Steps as Nccl() takes them, after who leads: 0 words, 1 a tensor of so many
// elements and its ticket.
void Nccl() {
  wire::NcclWords words;
  const auto said = [&words] {
    return '\0' + Chunk(words.SerializeAsString());
  };
  words.set_begin(true);
  const std::string begin = said();
  words.set_turn(true);
  const std::string turn = said();
  words.mutable_lines()->set_there("of 2");
  words.mutable_lines()->set_back("back");
  const std::string lines = turn + said();
  words.set_sent(7);
  const std::string sent = said();
  words.set_ask(7);
  const std::string ask = said();
  words.set_sum(5);
  const std::string sum = said();
  words.set_failed("no interface");
  const std::string failed = said();
  wire::NcclTicket ticket;
  ticket.set_lease(7);
  ticket.set_bytes(36);
  const std::string tensor =
      std::string("\1\11", 2) + Chunk(ticket.SerializeAsString());
  Save("nccl", "leads", '\1' + turn + tensor + sent + tensor + sent + sum);
  Save("nccl", "begins", '\1' + begin + turn);
  Save("nccl", "is_led", '\0' + lines + tensor + tensor + sent + sent);
  Save("nccl", "asks", '\0' + lines + ask + tensor + sent);
  Save("nccl", "fails", '\0' + lines + failed + tensor + lines);
  Save("nccl", "too_early", '\0' + tensor + sent + sum + lines);
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

void Agent() {
  const rpc::internal::Transfer transfer{{2, 3}, {2, 4}, 5, kBob};
  rpc::internal::RequestFrame request;
  request.to = 1;
  request.epoch = 1;
  request.call = 1;
  request.object = {1, 1};
  request.result = {2, 9};
  request.result_fork = {2, 10};
  request.transfers = {transfer};
  request.arguments = "arguments";
  const std::string asked = EncodeFrame(FrameKind::kRequest, request);
  Save("headers", "request", asked);
  rpc::internal::ResponseFrame response{.to = 1, .call = 1};
  response.status = absl::NotFoundError("gone");
  response.status.SetPayload("call", absl::Cord("worker"));
  response.transfers = {transfer};
  const std::string answered = EncodeFrame(FrameKind::kResponse, response);
  Save("headers", "response", answered);
  ControlFrame control{.to = 1, .epoch = 1, .first = 1, .items = {}};
  for (int kind = 1; kind <= 8; ++kind) {
    control.items.push_back({static_cast<ControlKind>(kind), {2, 9}, {2, 10}});
  }
  const std::string told = EncodeFrame(FrameKind::kControl, control);
  Save("headers", "control", told);
  Save("headers", "cancel",
       EncodeFrame(FrameKind::kCancel, rpc::internal::CancelFrame{1, 2}));
  const auto step = [](int kind, const std::string& frame) {
    return static_cast<char>(kind) + Chunk(frame.substr(1));
  };
  Save("control", "life",
       step(1, asked) + step(0, told) + step(2, answered) +
           std::string("\3\0\4\7\5", 5));
}

template <typename T>
void Argument(int kind, const std::string& name, const T& value) {
  rpc::Encoder encoder;
  encoder.Put(value);
  Save("arguments", name,
       std::string{static_cast<char>(kind),
                   static_cast<char>(encoder.tensors().size())} +
           encoder.bytes());
}

struct Tree {
  std::string name;
  std::vector<Tree> children;
  static constexpr auto Fields = std::tuple{&Tree::name, &Tree::children};
};

void Arguments() {
  const Tree tree{"root", {{"left", {}}, {"right", {{"leaf", {}}}}}};
  Argument(
      0, "map",
      std::map<std::string, std::vector<int64_t>>{{"a", {1, 2}}, {"b", {}}});
  Argument(1, "texts", std::vector<std::vector<std::string>>{{"x", ""}, {}});
  Argument(2, "optional", std::optional(std::pair(Tensor::Zeros({1}), true)));
  Argument(3, "tensors", std::vector<Tensor>{Tensor(), Tensor::Zeros({2})});
  Argument(4, "failure",
           absl::StatusOr<std::vector<float>>(absl::InternalError("why")));
  Argument(4, "floats", absl::StatusOr<std::vector<float>>({1, 2}));
  Argument(5, "tuple", std::tuple(int8_t{1}, 2.0, std::string("three")));
  Argument(6, "workers", std::vector<rpc::WorkerInfo>{kAlice, kBob});
  Argument(7, "shape", std::pair(Shape({2, 3}), Device::Cuda(1)));
  Argument(8, "array", std::array<uint16_t, 5>{1, 2, 3, 4, 5});
  Argument(9, "tree", tree);
  Argument(10, "trees",
           std::unordered_map<uint32_t, std::optional<Tree>>{{7, tree}});
}

void Rendezvous() {
  wire::JoinRequest join;
  join.set_cluster("baton");
  join.mutable_self()->set_name("alice");
  join.mutable_self()->set_rank(-1);
  join.mutable_self()->set_incarnation(1);
  join.mutable_self()->set_address("127.0.0.1:1");
  join.set_world_size(1);
  join.set_lease_ms(2000);
  join.add_expected("bob");
  const std::string asked = Chunk(join.SerializeAsString());
  wire::LeaveRequest leave;
  leave.set_cluster("baton");
  leave.set_name("alice");
  leave.set_incarnation(1);
  wire::RenewRequest renew;
  renew.set_cluster("baton");
  renew.set_name("alice");
  renew.set_incarnation(1);
  Save("rendezvous", "life",
       '\0' + asked + '\2' + Chunk(renew.SerializeAsString()) +
           std::string("\4\3", 2) + '\1' + Chunk(leave.SerializeAsString()));
  join.set_world_size(2);
  Save("rendezvous", "wait",
       '\0' + Chunk(join.SerializeAsString()) + '\0' + asked + '\3' + asked);
}

void Files() {
  SafeTensors content;
  content.tensors["weight"] = Tensor::Zeros({2, 2});
  content.tensors["flags"] = Tensor::Zeros({3}, {.dtype = DType::kBool});
  content.metadata["step"] = "7";
  fs::create_directories(corpus / "safetensors");
  BATON_CHECK(
      WriteSafeTensors((corpus / "safetensors" / "two").string(), content)
          .ok());
  const std::string images = data::MakeIdx({2, 2, 2}, "abcdefgh");
  Save("idx", "images", images);
  Save("idx", "labels", data::MakeIdx({2}, "\1\2"));
  Save("idx", "gzip", data::MakeGzip(images));
  const data::NamedBytes files = {{"a/one.txt", "1"}, {"a/b", "22"}};
  Save("archive", "tar", data::MakeTar(files, false));
  Save("archive", "tgz", data::MakeTar(files, true));
  Save("archive", "lrzip", std::string("LRZI\0\6", 6) + std::string(60, '\0'));
  Save("cifar", "record", std::string(1, '\3') + std::string(3072, 'p'));
  Save("jpeg", "flat", data::FlatJpeg(8, 8, 10, 200, 30));
}

void WordsAndPem() {
  Save("words", "address", "127.0.0.1:2900");
  Save("words", "ipv6", "[::1]:80");
  Save("words", "list", "alice=a:1,bob=[::1]:2,carol=unix:/tmp/s");
  Save("words", "targets", "10.0.0.1:5;unix:/tmp/baton-1/s");
  Save("words", "cores", "0-2,5");
  Save("words", "device", "cuda:1");
  Save("words", "flags", "--help\n--no-such=1\n--\nrest");
  const tools::Validity day{absl::UnixEpoch(),
                            absl::UnixEpoch() + absl::Hours(24)};
  const auto authority = tools::MakeAuthority("Seed", day);
  const auto own = tools::MakeCertificate(*authority, {"alice", "bob"}, day);
  // Without keys: nobody's business, but scanners would ask.
  Save("certificates", "expired",
       Chunk(own->certificate) + Chunk("-----BEGIN PRIVATE KEY-----\n") +
           authority->certificate);
}

}  // namespace
}  // namespace baton::fuzz

int main(int argc, char** argv) {
  using namespace baton::fuzz;
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
    return 2;
  }
  corpus = argv[1];
  Wire();
  SharedMemory();
  MessageRing();
  Nccl();
  Tcp();
  Agent();
  Arguments();
  Rendezvous();
  Files();
  WordsAndPem();
  return 0;
}
