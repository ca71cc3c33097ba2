// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/conv_choices.h"

#include <gtest/gtest.h>

#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/support/test_files.h"

namespace baton {
namespace {

using ::baton::testing::TempFolder;

const std::string kHeading = std::string(ConvChoices::kHeading) + "\n";
const ConvChoice kPlain = {.engine = 28, .knobs = {}};
const ConvChoice kTuned = {.engine = 7, .knobs = {{2, 64}, {14, -1}}};

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// What choices read from a file with this text.
class Reader {
 public:
  explicit Reader(const std::string& text)
      : path_(folder_.Write("choices", text)) {
    choices_.UseFile(path_);
  }
  std::optional<ConvChoice> Find(const std::string& key) const {
    return choices_.Find(key);
  }
  ConvChoices& choices() { return choices_; }
  std::string text() const { return Contents(path_); }

 private:
  TempFolder folder_;
  std::string path_;
  ConvChoices choices_;
};

TEST(ConvChoices, FindsWhatWasAddedLast) {
  ConvChoices choices;
  EXPECT_EQ(choices.Find("a b"), std::nullopt);
  choices.Add("a b", kPlain);
  choices.Add("a b", kTuned);
  EXPECT_EQ(choices.Find("a b"), kTuned);
  EXPECT_EQ(choices.Find("a"), std::nullopt);
}

TEST(ConvChoices, ServeALaterProcessFromTheFile) {
  const TempFolder folder;
  ConvChoices writer;
  writer.Add("earlier", kPlain);  // before there was a file: stays here
  writer.UseFile(folder / "choices");
  writer.Add("NVIDIA H200 x1,2 w3", kTuned);
  writer.Add("plain", kPlain);
  ConvChoices reader;
  reader.UseFile(folder / "choices");
  EXPECT_EQ(reader.Find("NVIDIA H200 x1,2 w3"), kTuned);
  EXPECT_EQ(reader.Find("plain"), kPlain);
  EXPECT_EQ(reader.Find("earlier"), std::nullopt);
  EXPECT_EQ(Contents(folder / "choices"),
            kHeading + "NVIDIA H200 x1,2 w3\t7\t2=64,14=-1\nplain\t28\t\n");
}

TEST(ConvChoices, PassOverLinesThatCannotBeRead) {
  Reader reader(kHeading +
                "good\t7\t2=64,14=-1\n"
                "no engine\t\t\n"
                "word\tseven\t\n"
                "negative\t-3\t\n"
                "half a knob\t7\t2=\n"
                "word knob\t7\t2=many\n"
                "no value\t7\t2\n"
                "two fields\t7\n"
                "four fields\t7\t2=64\tmore\n"
                "too long\t99999999999999999999\t\n" +
                std::string("\0\x80\xff\t\t\n", 6) + "also good\t28\t\n");
  EXPECT_EQ(reader.Find("good"), kTuned);
  EXPECT_EQ(reader.Find("also good"), kPlain);
  for (const char* key :
       {"no engine", "word", "negative", "half a knob", "word knob", "no value",
        "two fields", "four fields", "too long"})
    EXPECT_EQ(reader.Find(key), std::nullopt) << key;
}

TEST(ConvChoices, ALineThatWasCutOffIsNoChoiceAndHarmsNoLaterOne) {
  Reader reader(kHeading + "whole\t28\t\ncut\t7\t2=6");
  EXPECT_EQ(reader.Find("whole"), kPlain);
  EXPECT_EQ(reader.Find("cut"), std::nullopt);
  reader.choices().Add("later", kTuned);
  Reader again(reader.text());
  EXPECT_EQ(again.Find("later"), kTuned);
  EXPECT_EQ(again.Find("whole"), kPlain);
}

TEST(ConvChoices, TheLastLineOfAKeyCounts) {
  Reader reader(kHeading + "key\t28\t\n" + kHeading + "key\t7\t2=64,14=-1\n");
  EXPECT_EQ(reader.Find("key"), kTuned);
}

TEST(ConvChoices, LeaveAFileOfSomethingElseAlone) {
  const std::string text = "[settings]\nkey\t28\t\n";
  Reader reader(text);
  EXPECT_EQ(reader.Find("key"), std::nullopt);
  reader.choices().Add("key", kTuned);
  EXPECT_EQ(reader.Find("key"), kTuned);
  EXPECT_EQ(reader.text(), text);
}

TEST(ConvChoices, HoldWithoutAFileThatCanBeWritten) {
  const TempFolder folder;
  ConvChoices choices;
  choices.UseFile(folder / "no such folder/choices");
  choices.Add("key", kTuned);
  EXPECT_EQ(choices.Find("key"), kTuned);
}

TEST(ConvChoices, NoFileIsWrittenAfterItWasTakenAway) {
  const TempFolder folder;
  ConvChoices choices;
  choices.UseFile(folder / "choices");
  choices.UseFile("");
  choices.Add("key", kTuned);
  EXPECT_EQ(Contents(folder / "choices"), kHeading);
}

TEST(ConvChoices, SeveralWritersShareAFile) {
  constexpr int kWriters = 4, kEach = 50;
  const TempFolder folder;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&folder, writer] {
      ConvChoices choices;  // as of another process
      choices.UseFile(folder / "choices");
      for (int i = 0; i < kEach; ++i)
        choices.Add(absl::StrCat("key ", writer, " ", i), kTuned);
    });
  }
  for (std::thread& writer : writers) writer.join();
  ConvChoices reader;
  reader.UseFile(folder / "choices");
  for (int writer = 0; writer < kWriters; ++writer) {
    for (int i = 0; i < kEach; ++i)
      EXPECT_EQ(reader.Find(absl::StrCat("key ", writer, " ", i)), kTuned);
  }
}

}  // namespace
}  // namespace baton
