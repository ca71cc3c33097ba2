// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/checkpoint_manifest.h"
#include "core/safetensors.h"
#include "core/status.h"
#include "core/tensor.h"
#include "tests/fuzz/seeds.h"
#include "tests/models/data/made_files.h"

namespace baton::fuzz {

void SaveFileSeeds() {
  SafeTensors content;
  content.tensors["weight"] = Tensor::Zeros({2, 2});
  content.tensors["flags"] = Tensor::Zeros({3}, {.dtype = DType::kBool});
  content.metadata["step"] = "7";
  BATON_CHECK(
      WriteSafeTensors(PathOf("safetensors", "two").string(), content).ok());
  Save("manifest", "two",
       ManifestText({.path = "", .step = 7, .id = "5f0c93ab21d4e876"},
                    {{"shard_0.5f.safetensors", {R"({"a":{}})", {{"a", 1}}}},
                     {"shard_1.5f.safetensors", {"{}  ", {}}}}));
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

}  // namespace baton::fuzz
