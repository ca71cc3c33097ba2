// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/checkpoint_manifest.h"
#include "core/checkpoint_writer.h"
#include "core/ops/arithmetic.h"
#include "tests/support/test_files.h"

namespace baton {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

NamedTensors StateOf(int64_t step) {
  const auto value = static_cast<double>(step);
  return {{"model.a", Tensor::Full({3, 5}, value)},
          {"model.b", Tensor::Full({2}, value, {.dtype = DType::kBF16})},
          {"optimizer.a.step", Tensor::From<int64_t>({step}, Shape())}};
}

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

// As deep as that; a stack holds less.
std::string Nested(size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

class CheckpointTest : public ::testing::Test {
 protected:
  absl::Status Save(int64_t step, int keep = 0) {
    CheckpointWriter writer({.folder = folder_ / "run", .keep = keep});
    const absl::Status status = writer.Save(step, StateOf(step));
    return status.ok() ? writer.Wait() : status;
  }
  std::string Folder() const { return folder_ / "run"; }
  // The files of a step, shards before others.
  std::vector<std::string> Files(int64_t step) const {
    std::vector<std::string> files;
    for (const auto& entry :
         fs::directory_iterator(folder_ / absl::StrCat("run/step_", step)))
      files.push_back(entry.path());
    std::sort(files.rbegin(), files.rend());
    return files;
  }
  absl::Status ReadAll(int64_t step) const {
    const auto checkpoint = Checkpoint::Open(Folder(), step);
    if (!checkpoint.ok()) return checkpoint.status();
    return checkpoint->Read(checkpoint->Names()).status();
  }
  // The step that all of it can be read of.
  absl::StatusOr<int64_t> Resume(IfBroken if_broken) const {
    return ResumeFrom(Folder(), if_broken, [](const Checkpoint& checkpoint) {
      return checkpoint.Read(checkpoint.Names()).status();
    });
  }

  const testing::TempFolder folder_;
};

TEST_F(CheckpointTest, GivesBackWhatWasSaved) {
  ASSERT_TRUE(Save(7).ok());
  const auto checkpoint = Checkpoint::Open(Folder(), 7);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->step(), 7);
  EXPECT_THAT(checkpoint->Names(),
              ElementsAre("model.a", "model.b", "optimizer.a.step"));
  const auto model = checkpoint->ReadPart("model");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->size(), 2u);
  for (const auto& [name, tensor] : AsPart("model", *model))
    EXPECT_TRUE(ops::BitEqual(tensor, StateOf(7).at(name))) << name;
  EXPECT_THAT(Text(checkpoint->Read({"model.c"}).status()),
              HasSubstr("no shard has a tensor called model.c"));
  EXPECT_TRUE(absl::IsNotFound(Checkpoint::Open(Folder(), 8).status()));
}

TEST_F(CheckpointTest, KeepsTheNewest) {
  for (const int64_t step : {5, 10, 15, 20}) ASSERT_TRUE(Save(step, 2).ok());
  EXPECT_THAT(CheckpointSteps(Folder()), ElementsAre(15, 20));
  // Begun by one that was killed.
  ASSERT_TRUE(BeginCheckpoint(Folder(), 17).ok());
  ASSERT_TRUE(BeginCheckpoint(Folder(), 30).ok());
  EXPECT_THAT(CheckpointSteps(Folder()), ElementsAre(15, 20));
  // Of a training that was resumed from step 15: the later one stays.
  ASSERT_TRUE(Save(18, 1).ok());
  EXPECT_THAT(CheckpointSteps(Folder()), ElementsAre(18, 20));
  EXPECT_FALSE(fs::exists(folder_ / "run/step_17"));
  EXPECT_FALSE(fs::exists(folder_ / "run/step_30"));
  folder_.Write("run/notes.txt", "mine");
  ASSERT_TRUE(Save(21, 1).ok());
  EXPECT_TRUE(fs::exists(folder_ / "run/notes.txt"));
  EXPECT_THAT(CheckpointSteps(folder_ / "none"), ElementsAre());
}

TEST_F(CheckpointTest, AStepIsSavedAgain) {
  ASSERT_TRUE(Save(3).ok());
  const std::vector<std::string> before = Files(3);
  ASSERT_TRUE(Save(3).ok());
  EXPECT_EQ(Files(3).size(), 2u);
  EXPECT_NE(Files(3), before);
  EXPECT_TRUE(ReadAll(3).ok());
}

TEST_F(CheckpointTest, TornMissingAndForeignShardsAreNamed) {
  const auto expect_broken = [&](const std::string& what) {
    const absl::Status status = ReadAll(20);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(Text(status), HasSubstr(Files(20).front()));
    EXPECT_THAT(Text(status), HasSubstr(what));
    EXPECT_THAT(Text(status), HasSubstr("resume from that of step 10"));
    EXPECT_TRUE(absl::IsDataLoss(Resume(IfBroken::kFail).status()));
    EXPECT_EQ(Resume(IfBroken::kUsePrevious).value_or(-1), 10);
    ASSERT_TRUE(Save(20).ok());  // anew
    EXPECT_EQ(Resume(IfBroken::kFail).value_or(-1), 20);
  };
  ASSERT_TRUE(Save(10).ok());
  ASSERT_TRUE(Save(20).ok());

  std::string shard = Files(20).front();
  fs::resize_file(shard, fs::file_size(shard) - 1);
  expect_broken("the file has");

  shard = Files(20).front();
  fs::resize_file(shard, 4);
  expect_broken("the file ends early");

  shard = Files(20).front();
  {
    std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('x');
  }
  expect_broken("checksum");

  // Of the same shapes, from another save.
  shard = Files(20).front();
  fs::copy_file(Files(10).front(), shard, fs::copy_options::overwrite_existing);
  expect_broken("another file than was written");

  shard = Files(20).front();
  fs::remove(shard);
  const absl::Status missing = ReadAll(20);
  EXPECT_TRUE(absl::IsDataLoss(missing)) << missing;
  EXPECT_THAT(Text(missing), HasSubstr(shard));
  EXPECT_EQ(Resume(IfBroken::kUsePrevious).value_or(-1), 10);
}

TEST_F(CheckpointTest, ABrokenManifestIsDataLoss) {
  ASSERT_TRUE(Save(1).ok());
  const std::string manifest = Files(1).back();
  std::ifstream file(manifest);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  const auto replaced = [&](const std::string& what, const std::string& by) {
    std::string text = whole;
    text.replace(text.find(what), what.size(), by);
    return text;
  };
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[1]"),
        whole.substr(0, whole.size() / 2),
        replaced("\"header\": {",
                 "\"header\": {\"x\": " + Nested(300'000) + ","),
        replaced("\"step\": 1", "\"step\": 2"),
        replaced("\"version\": 1", "\"version\": 9"),
        replaced("\"shard_0.", "\"../shard_0."),
        replaced("\"header_bytes\": ", "\"header_bytes\": 9999999999")}) {
    std::ofstream(manifest, std::ios::trunc) << text;
    const absl::Status status = ReadAll(1);
    EXPECT_TRUE(absl::IsDataLoss(status)) << text.substr(0, 99) << status;
    EXPECT_THAT(Text(status), HasSubstr(manifest));
    EXPECT_THAT(Text(status), HasSubstr("there is none before it"));
  }
  std::ofstream(manifest, std::ios::trunc) << whole;
  EXPECT_TRUE(ReadAll(1).ok());
}

TEST_F(CheckpointTest, WithoutOneThereIsNothingToResume) {
  const auto none = Resume(IfBroken::kUsePrevious);
  EXPECT_TRUE(absl::IsNotFound(none.status())) << none.status();
  EXPECT_THAT(Text(none.status()), HasSubstr(Folder()));
  ASSERT_TRUE(Save(1).ok());
  ASSERT_TRUE(Save(2).ok());
  // What does not fit is no broken checkpoint.
  int calls = 0;
  const auto misfit =
      ResumeFrom(Folder(), IfBroken::kUsePrevious, [&](const Checkpoint&) {
        ++calls;
        return absl::InvalidArgumentError("another model");
      });
  EXPECT_TRUE(absl::IsInvalidArgument(misfit.status()));
  EXPECT_EQ(calls, 1);
}

TEST_F(CheckpointTest, ShardsMayShareEqualTensorsAlone) {
  const auto draft = BeginCheckpoint(Folder(), 4);
  ASSERT_TRUE(draft.ok()) << draft.status();
  const Tensor tied = Tensor::Arange(6, DType::kF32);
  const auto first = WriteShard(*draft, 0, {{"tied", tied}, {"a", tied}});
  const auto second = WriteShard(*draft, 1, {{"tied", tied}});
  const auto third = WriteShard(*draft, 2, {{"tied", Tensor::Ones({6})}});
  ASSERT_TRUE(first.ok() && second.ok() && third.ok());
  const absl::Status clash = FinishCheckpoint(*draft, {*first, *third}, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(clash)) << clash;
  EXPECT_THAT(Text(clash), HasSubstr("called tied"));
  EXPECT_TRUE(CheckpointSteps(Folder()).empty());
  ASSERT_TRUE(FinishCheckpoint(*draft, {*first, *second}, 1).ok());
  EXPECT_EQ(Files(4).size(), 3u);  // the third shard is of no checkpoint
  EXPECT_TRUE(ReadAll(4).ok());
  Shard elsewhere = *second;
  elsewhere.file = "shard_9.safetensors";
  const absl::Status unseen = FinishCheckpoint(*draft, {elsewhere}, 1);
  EXPECT_TRUE(absl::IsNotFound(unseen)) << unseen;
  EXPECT_THAT(Text(unseen), HasSubstr("same folder"));
}

TEST_F(CheckpointTest, APartBecomesAPlainFile) {
  ASSERT_TRUE(Save(2).ok());
  const auto checkpoint = Checkpoint::Open(Folder(), 2);
  ASSERT_TRUE(ExportPart(*checkpoint, "model", folder_ / "w").ok());
  const auto weights = ReadSafeTensors(folder_ / "w");
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(weights->metadata.at("format"), "pt");
  EXPECT_EQ(weights->tensors.size(), 2u);
  EXPECT_TRUE(
      ops::BitEqual(weights->tensors.at("b"), StateOf(2).at("model.b")));
}

TEST_F(CheckpointTest, TheWriterKeepsWhatItWasGiven) {
  CheckpointWriter writer({.folder = Folder()});
  const NamedTensors state = StateOf(1);
  ASSERT_TRUE(writer.Save(1, state).ok());
  for (const auto& [name, tensor] : state) tensor.Fill(0);
  ASSERT_TRUE(writer.Save(2, state).ok());  // waits for the one before
  EXPECT_THAT(CheckpointSteps(Folder()), ::testing::Contains(1));
  const auto first = Checkpoint::Open(Folder(), 1);
  EXPECT_TRUE(ops::BitEqual(first->Read({"model.a"})->at("model.a"),
                            StateOf(1).at("model.a")));
  EXPECT_TRUE(writer.Wait().ok());
}

TEST(HostCopies, TakeTheSameMemoryAgain) {
  HostCopies copies;
  const NamedTensors state = StateOf(3);
  const NamedTensors first = copies.Begin(state).Wait();
  const NamedTensors second = copies.Begin(StateOf(4)).Wait();
  EXPECT_TRUE(ops::BitEqual(first.at("model.a"), StateOf(4).at("model.a")));
  EXPECT_TRUE(SameView(first.at("model.b"), second.at("model.b")));
  copies.Leave();
  copies.Begin(state).Wait();
  EXPECT_TRUE(ops::BitEqual(first.at("model.a"), StateOf(4).at("model.a")));
  // Of another shape.
  const Tensor wide =
      Tensor::Ones({2, 3, 4, 4}, {.format = MemoryFormat::kChannelsLast});
  const NamedTensors other = copies.Begin({{"model.a", wide}}).Wait();
  ASSERT_EQ(other.size(), 1u);
  EXPECT_TRUE(ops::BitEqual(other.at("model.a"), wide));
  EXPECT_FALSE(SameView(other.at("model.a"), wide));
}

// Its own shard is written while the other process has not answered.
TEST_F(CheckpointTest, AManifestWaitsForTheShardsOfOthers) {
  Promise<std::vector<Shard>> others;
  CheckpointDraft draft;
  CheckpointWriter writer({.folder = Folder()});
  ASSERT_TRUE(writer
                  .Save(1, StateOf(1),
                        [&](const CheckpointDraft& begun) {
                          draft = begun;
                          return others.future();
                        })
                  .ok());
  const auto shard = WriteShard(draft, 1, {{"far", Tensor::Ones({1})}});
  ASSERT_TRUE(shard.ok()) << shard.status();
  EXPECT_TRUE(CheckpointSteps(Folder()).empty());
  others.Set(std::vector<Shard>{*shard});
  ASSERT_TRUE(writer.Wait().ok());
  EXPECT_EQ(Checkpoint::Open(Folder(), 1)->Names().size(), 4u);
}

TEST_F(CheckpointTest, ErrorsComeOutAtTheNextSave) {
  CheckpointWriter writer({.folder = Folder()});
  const auto fails = [](const CheckpointDraft&) {
    return ReadyFuture<std::vector<Shard>>(absl::UnavailableError("bob died"));
  };
  ASSERT_TRUE(writer.Save(1, StateOf(1), fails).ok());
  const absl::Status at_next = writer.Save(2, StateOf(2));
  EXPECT_THAT(Text(at_next), HasSubstr("bob died"));
  EXPECT_FALSE(fs::exists(folder_ / "run/step_2"));  // nothing was begun
  ASSERT_TRUE(writer.Save(2, StateOf(2), fails).ok());
  EXPECT_THAT(Text(writer.Wait()), HasSubstr("bob died"));
  EXPECT_TRUE(writer.Wait().ok());  // said once
  ASSERT_TRUE(writer.Save(3, StateOf(3)).ok());
  ASSERT_TRUE(writer.Wait().ok());
  EXPECT_THAT(CheckpointSteps(Folder()), ElementsAre(3));
  EXPECT_FALSE(CheckpointWriter({.folder = ""}).Save(1, {}).ok());
  EXPECT_FALSE(writer.Save(-1, {}).ok());
  folder_.Write("file", "no folder");
  const absl::Status nowhere =
      CheckpointWriter({.folder = folder_ / "file"}).Save(1, {});
  EXPECT_THAT(Text(nowhere), HasSubstr(folder_ / "file"));
}

}  // namespace
}  // namespace baton
