// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <set>

#include "gtest/gtest.h"
#include "models/data/cifar10.h"
#include "models/data/idx.h"
#include "models/data/image_folder.h"
#include "models/data/open.h"
#include "models/data/synthetic.h"
#include "tests/models/data/made_files.h"
#include "tests/support/test_files.h"

namespace baton::data {
namespace {

using testing::TempFolder;

constexpr int kRed = 0;

NamedBytes ThreeImages() {
  return {{"set/wolf/b.JPEG", FlatJpeg(8, 8, 10, 0, 0)},
          {"set/wolf/a.jpg", FlatJpeg(8, 8, 20, 0, 0)},
          {"set/ape/z.jpg", FlatJpeg(8, 8, 30, 0, 0)},
          {"set/ape/readme.txt", "not an image"},
          {"set/ape/._z.jpg", "hidden"}};
}

void ExpectThreeImages(const std::string& path) {
  SCOPED_TRACE(path);
  auto images = ImageFolder::Open(path);
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_EQ((*images)->classes(), std::vector<std::string>({"ape", "wolf"}));
  ASSERT_EQ((*images)->size(), 3);
  const int reds[] = {30, 20, 10};
  const int64_t labels[] = {0, 1, 1};
  for (int64_t i = 0; i < 3; ++i) {
    auto sample = (*images)->Get(i);
    ASSERT_TRUE(sample.ok()) << sample.status();
    EXPECT_EQ(sample->label, labels[i]);
    EXPECT_NEAR(At(sample->image, kRed, 3, 3), reds[i], 2);
  }
}

TEST(ImageFolder, ReadsFoldersAndArchivesAlike) {
  const TempFolder temp;
  for (const auto& [name, bytes] : ThreeImages()) temp.Write(name, bytes);
  ExpectThreeImages(temp / "set");
  NamedBytes dotted;
  for (const auto& [name, bytes] : ThreeImages())
    dotted.emplace_back("./" + name, bytes);
  ExpectThreeImages(temp.Write("images.tar", MakeTar(ThreeImages(), false)));
  ExpectThreeImages(temp.Write("dotted.tar", MakeTar(dotted, false)));
  ExpectThreeImages(temp.Write("images.tgz", MakeTar(ThreeImages(), true)));
}

TEST(ImageFolder, ErrorsNameTheImage) {
  const TempFolder temp;
  const std::string cut = FlatJpeg(32, 32, 1, 2, 3).substr(0, 300);
  temp.Write("set/a/broken.jpg", cut);
  const std::string tar =
      temp.Write("set.tar", MakeTar({{"set/a/broken.jpg", cut}}, false));
  for (const std::string& path : {temp / "set", tar}) {
    auto images = ImageFolder::Open(path);
    ASSERT_TRUE(images.ok()) << images.status();
    const absl::Status status = (*images)->Get(0).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_NE(status.ToString().find("a/broken.jpg"), std::string::npos);
    EXPECT_NE(status.ToString().find(path), std::string::npos);
  }
}

TEST(ImageFolder, AnImageThatVanishedIsAStatus) {
  const TempFolder temp;
  const std::string file = temp.Write("set/a/x.jpg", FlatJpeg(8, 8, 1, 1, 1));
  auto images = ImageFolder::Open(temp / "set");
  ASSERT_TRUE(images.ok());
  std::filesystem::remove(file);
  EXPECT_EQ((*images)->Get(0).status().code(), absl::StatusCode::kNotFound);
}

TEST(ImageFolder, WhatIsMissingEmptyOrCutOffIsNamed) {
  const TempFolder temp;
  std::filesystem::create_directories(temp / "empty");
  NamedBytes many;
  for (int i = 0; i < 40; ++i)
    many.emplace_back("s/c/" + std::to_string(i) + ".jpg",
                      FlatJpeg(16, 16, i, 255 - i, 7 * i % 256));
  const std::string tar = MakeTar(many, false);
  const std::string tgz = MakeTar(many, true);
  const std::string paths[] = {
      temp / "nowhere.tar",
      temp / "empty",
      temp.Write("empty.tar", ""),
      temp.Write("noise.tar", std::string(2000, 'x')),
      temp.Write("cut.tar", tar.substr(0, tar.size() / 2 + 100)),
      temp.Write("cut.tgz", tgz.substr(0, tgz.size() / 2)),
      temp.Write("text.tgz", "hello"),
  };
  for (const std::string& path : paths) {
    auto images = ImageFolder::Open(path);
    ASSERT_FALSE(images.ok()) << path;
    EXPECT_EQ(images.status().message().substr(0, path.size()), path);
  }
}

std::string CifarRecord(int label, int first_pixel) {
  std::string record(3073, '\7');
  record[0] = static_cast<char>(label);
  record[1] = static_cast<char>(first_pixel);
  return record;
}

TEST(Cifar10, ReadsFilesFoldersAndArchives) {
  const TempFolder temp;
  const std::string one = CifarRecord(3, 200) + CifarRecord(9, 100);
  const std::string two = CifarRecord(0, 50);
  const NamedBytes files = {{"c/data_batch_2.bin", two},
                            {"c/data_batch_1.bin", one},
                            {"c/test_batch.bin", CifarRecord(5, 1)}};
  for (const auto& [name, bytes] : files) temp.Write(name, bytes);
  const std::string tgz = temp.Write("c.tar.gz", MakeTar(files, true));
  for (const std::string& path : {temp / "c", tgz}) {
    auto train = Cifar10::Open(path, Split::kTrain);
    ASSERT_TRUE(train.ok()) << train.status();
    ASSERT_EQ((*train)->size(), 3);
    EXPECT_EQ((*train)->Get(1)->label, 9);
    EXPECT_EQ(At((*train)->Get(0)->image, kRed, 0, 0), 200);
    EXPECT_EQ(At((*train)->Get(2)->image, kRed, 0, 0), 50);
    auto test = Cifar10::Open(path, Split::kTest);
    ASSERT_TRUE(test.ok()) << test.status();
    EXPECT_EQ((*test)->Get(0)->label, 5);
    EXPECT_EQ((*test)->classes()[5], "dog");
  }
  auto file = Cifar10::Open(temp / "c/data_batch_1.bin", Split::kTrain);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->size(), 2);
}

TEST(Cifar10, RefusesWrongSizesLabelsAndPlaces) {
  const TempFolder temp;
  std::filesystem::create_directories(temp / "none");
  const std::string good = CifarRecord(1, 1);
  const std::pair<std::string, absl::StatusCode> cases[] = {
      {temp.Write("short.bin", good.substr(1)), absl::StatusCode::kDataLoss},
      {temp.Write("empty.bin", ""), absl::StatusCode::kDataLoss},
      {temp.Write("label.bin", good + CifarRecord(10, 1)),
       absl::StatusCode::kDataLoss},
      {temp / "none", absl::StatusCode::kNotFound},
      {temp / "nowhere.bin", absl::StatusCode::kNotFound}};
  for (const auto& [path, code] : cases) {
    auto dataset = Cifar10::Open(path, Split::kTrain);
    EXPECT_EQ(dataset.status().code(), code) << path;
    EXPECT_NE(dataset.status().ToString().find(path), std::string::npos);
  }
}

TEST(Idx, ReadsImagesAndLabelsPlainAndGzipped) {
  const TempFolder temp;
  const std::string images = MakeIdx({2, 2, 3}, "abcdefghijkl");
  const std::string labels = MakeIdx({2}, std::string{4, 1});
  for (const bool gzip : {false, true}) {
    const std::string path =
        temp.Write("x-images-idx3-ubyte", gzip ? MakeGzip(images) : images);
    const std::string labels_path =
        temp.Write("x-labels-idx1-ubyte", gzip ? MakeGzip(labels) : labels);
    auto dataset = IdxDataset::Open(path, labels_path);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    ASSERT_EQ((*dataset)->size(), 2);
    EXPECT_EQ((*dataset)->classes().size(), 5U);
    auto sample = (*dataset)->Get(1);
    EXPECT_EQ(sample->label, 1);
    EXPECT_EQ(sample->image.shape(), Shape({1, 2, 3}));
    EXPECT_EQ(At(sample->image, 0, 1, 2), 'l');
  }
}

TEST(Idx, RefusesWhatDoesNotFitItsHeader) {
  const TempFolder temp;
  const std::string good = MakeIdx({2, 2, 3}, "abcdefghijkl");
  std::string floats = good;
  floats[2] = 13;
  const std::string gz = MakeGzip(MakeIdx({40, 50}, std::string(2000, 'q')));
  const std::string cases[] = {
      temp / "nowhere",
      temp.Write("empty", ""),
      temp.Write("short", good.substr(0, 7)),
      temp.Write("cut", good.substr(0, good.size() - 1)),
      temp.Write("long", good + "x"),
      temp.Write("floats", floats),
      temp.Write("text", "hello world"),
      temp.Write("huge", MakeIdx({~0U, ~0U, ~0U, ~0U}, "x")),
      temp.Write("cut.gz", gz.substr(0, gz.size() / 2))};
  for (const std::string& path : cases) {
    auto tensor = ReadIdx(path);
    ASSERT_FALSE(tensor.ok()) << path;
    EXPECT_EQ(tensor.status().message().substr(0, path.size()), path);
  }
  const std::string images = temp.Write("images", good);
  const std::string labels = temp.Write("labels", MakeIdx({3}, "abc"));
  EXPECT_EQ(IdxDataset::Open(images, labels).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(Synthetic, SamplesDependOnSeedAndIndexAlone) {
  const Synthetic a({.size = 10, .height = 8, .width = 9, .classes = 4});
  const Synthetic b({.size = 99, .height = 8, .width = 9, .classes = 4});
  const Synthetic other(
      {.size = 10, .height = 8, .width = 9, .classes = 4, .seed = 1});
  EXPECT_EQ(a.Get(3)->image.ToVector<float>(),
            b.Get(3)->image.ToVector<float>());
  EXPECT_NE(a.Get(3)->image.ToVector<float>(),
            a.Get(4)->image.ToVector<float>());
  EXPECT_NE(a.Get(3)->image.ToVector<float>(),
            other.Get(3)->image.ToVector<float>());
  std::set<int64_t> labels;
  for (int64_t i = 0; i < 99; ++i) labels.insert(b.Get(i)->label);
  EXPECT_EQ(labels, std::set<int64_t>({0, 1, 2, 3}));
}

TEST(Synthetic, PixelsAreStandardNormal) {
  const Synthetic set({.size = 1, .height = 128, .width = 128});
  double sum = 0;
  double squares = 0;
  const auto pixels = set.Get(0)->image.ToVector<float>();
  for (const float x : pixels) {
    sum += x;
    squares += x * x;
  }
  const auto count = static_cast<double>(pixels.size());
  EXPECT_NEAR(sum / count, 0, 0.02);
  EXPECT_NEAR(squares / count, 1, 0.03);
}

TEST(OpenDataset, TellsTheFormatsApart) {
  const TempFolder temp;
  const NamedBytes cifar = {{"c/data_batch_1.bin", CifarRecord(3, 200)}};
  temp.Write(cifar[0].first, cifar[0].second);
  temp.Write("t-labels-idx1-ubyte", MakeIdx({1}, "\2"));
  for (const auto& [name, bytes] : ThreeImages()) temp.Write(name, bytes);
  const std::pair<std::string, int64_t> cases[] = {
      {temp / "set", 3},
      {temp.Write("images.tgz", MakeTar(ThreeImages(), true)), 3},
      {temp / "c", 1},
      {temp / "c/data_batch_1.bin", 1},
      {temp.Write("cifar.tgz", MakeTar(cifar, true)), 1},
      {temp.Write("t-images-idx3-ubyte", MakeIdx({1, 1, 2}, "ab")), 1}};
  for (const auto& [path, size] : cases) {
    auto dataset = OpenDataset(path);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_EQ((*dataset)->size(), size) << path;
  }
}

TEST(OpenDataset, NamesWhatItCannotOpen) {
  const TempFolder temp;
  const std::string cases[] = {
      temp / "nowhere", temp.Write("notes.txt", "hello"),
      temp.Write("text.tar", MakeTar({{"a.txt", "hello"}}, false)),
      temp.Write("labels-idx1-ubyte", MakeIdx({1}, "a"))};
  for (const std::string& path : cases) {
    auto dataset = OpenDataset(path);
    ASSERT_FALSE(dataset.ok()) << path;
    EXPECT_EQ(dataset.status().message().substr(0, path.size()), path);
  }
}

// Small files that are laid out as those that people download.
NamedBytes PublishedClassFolders(const std::string& top, int64_t side) {
  return {{top, ""},
          {top + "n03291819/", ""},
          {top + "n03291819/n03291819_1.JPEG", FlatJpeg(side, side, 9, 0, 0)},
          {top + "n04553703/", ""},
          {top + "n04553703/n04553703_7.JPEG", FlatJpeg(side, side, 8, 0, 0)}};
}

TEST(OpenDataset, ReadsFilesAsTheyArePublished) {
  const TempFolder temp;
  const std::vector<std::string> folders = {"n03291819", "n04553703"};
  const std::vector<std::string> digits = {"0", "1", "2", "3"};
  temp.Write("t10k-labels-idx1-ubyte.gz", MakeGzip(MakeIdx({2}, "\3\1")));
  struct Case {
    std::string path;
    std::vector<std::string> classes;
    std::vector<int64_t> labels;
    Shape first;
  };
  const Case cases[] = {
      {temp.Write("test.tgz",
                  MakeTar(PublishedClassFolders("test/", 32), true)),
       folders,
       {0, 1},
       {3, 32, 32}},
      {temp.Write("images.tar",
                  MakeTar(PublishedClassFolders("./", 70), false)),
       folders,
       {0, 1},
       {3, 70, 70}},
      {temp.Write("t10k-images-idx3-ubyte.gz",
                  MakeGzip(MakeIdx({2, 28, 28}, std::string(1568, 'x')))),
       digits,
       {3, 1},
       {1, 28, 28}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.path);
    auto dataset = OpenDataset(c.path);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_EQ((*dataset)->classes(), c.classes);
    ASSERT_EQ((*dataset)->size(), static_cast<int64_t>(c.labels.size()));
    for (size_t i = 0; i < c.labels.size(); ++i) {
      auto sample = (*dataset)->Get(static_cast<int64_t>(i));
      ASSERT_TRUE(sample.ok()) << sample.status();
      EXPECT_EQ(sample->label, c.labels[i]);
      EXPECT_EQ(sample->image.shape(), c.first);
    }
  }
}

}  // namespace
}  // namespace baton::data
