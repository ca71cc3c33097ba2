#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Proves that folders are layers: who includes whom, and which library where.

Usage: check_includes.py [ROOT]

Prints one line per broken rule and ends with 1 if there was any.
"""

import pathlib
import re
import sys

# What the files of a folder may include, besides their own folder. The longest
# folder that holds a file decides.
LOCAL = ["core", "autograd", "optim", "models", "models/nn", "models/data"]
LAYERS = {
    "core": [],
    "autograd": ["core"],
    "rpc": ["core"],
    "optim": ["core", "autograd"],
    "models/nn": ["core", "autograd"],
    "models/data": ["core"],
    "models": ["core", "autograd", "models/nn"],
    "models/torch": ["core", "autograd", "models/nn"],
    "autograd/distributed": ["core", "autograd", "rpc"],
    "optim/distributed": ["core", "autograd", "rpc", "optim",
                          "autograd/distributed"],
    "models/distributed": LOCAL + ["rpc", "autograd/distributed",
                                   "optim/distributed"],
    "tools": LOCAL + ["rpc", "autograd/distributed", "optim/distributed",
                      "models/distributed"],
    "examples": LOCAL + ["rpc", "autograd/distributed", "optim/distributed",
                         "models/distributed", "models/torch", "tools"],
    "tests": LOCAL + ["rpc", "autograd/distributed", "optim/distributed",
                      "models/distributed", "models/torch", "tools",
                      "examples"],
}

# Headers of a library -> the files that may include them.
CONFINED = [
    ("gRPC", r"grpc", r"rpc/.*\.cc|rpc/transports/.*|tests/.*\.cc"),
    ("OpenSSL", r"openssl/", r"rpc/.*\.cc|tools/.*\.cc|tests/.*\.cc"),
    ("protobuf", r"google/protobuf/|.*\.pb\.h",
     r"rpc/.*\.cc|examples/support/event_file\.cc|tests/.*\.cc"),
    ("oneDNN", r"(oneapi/)?dnnl", r"core/cpu/.*|tests/core/.*"),
    ("BLAS", r"(cblas|openblas)", r"core/cpu/.*"),
    ("CUDA", r"(cuda|cudnn|cublas|cupti|nccl|curand)", r"core/cuda/.*"),
    ("LibTorch", r"(torch|ATen|c10)/",
     r"models/torch/.*|examples/torch/.*\.cc|tests/models/torch/.*"
     r"|tests/out_of_tree/with_torch/.*"),
    ("MPI", r"mpi\.h",
     r"tools/mpi/.*|tests/tools/mpi/.*|tests/out_of_tree/with_mpi/.*"),
    ("OpenMP", r"omp\.h", r"core/.*"),
    ("libjpeg", r"j(peg|error)", r"models/data/.*\.cc|tests/.*\.cc"),
    ("libarchive", r"archive(_entry)?\.h", r"models/data/.*\.cc|tests/.*\.cc"),
    ("HTTP", r"httplib\.h", r"tools/view/.*\.cc|tests/tools/.*"),
    ("zlib", r"zlib\.h", r"core/cpu/crc32\.cc"),
    ("JSON", r"nlohmann/", r".*\.cc"),
    ("GoogleTest", r"(gtest|gmock)/", r"tests/.*"),
    # core/mutex.h is the only mutex: the lock annotations hang on it.
    ("std::mutex", r"(mutex|condition_variable|shared_mutex)$",
     r"core/mutex\.h"),
    ("absl::Mutex", r"absl/synchronization/", r""),
]
EXTERNAL = re.compile(r"absl/|grpc|google/protobuf/|gtest/|gmock/|nlohmann/")

# Projects of their own: they have headers of their own beside their sources, and
# see Baton's as installed.
OUT_OF_TREE = ("tests/out_of_tree/", "examples/tutorial/")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.M)
CONDITIONAL = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b.*CUDA", re.M)
LICENCE = ("// Copyright 2026 The Baton Authors\n"
           "// SPDX-License-Identifier: Apache-2.0\n")


def layer_of(path):
    """The longest layer that holds `path`, or None."""
    holders = [l for l in LAYERS if path.startswith(l + "/")]
    return max(holders, key=len, default=None)


def check_include(name, quote, target, files):
    """The rules that one #include line of file `name` breaks."""
    for library, headers, users in CONFINED:
        if re.match(headers, target) and not re.fullmatch(users, name):
            yield f"{name}: includes <{target}>, but {library} is confined to " \
                  f"{users.replace(chr(92), '') or 'no file at all'}"
    if quote == "<" or EXTERNAL.match(target):
        return
    if target.endswith(".pb.h"):
        if re.sub(r"(\.grpc)?\.pb\.h$", ".proto", target) not in files:
            yield f'{name}: "{target}" comes from no .proto file of the tree'
        return
    if name.startswith(OUT_OF_TREE):
        if any(folder + target in files for folder in OUT_OF_TREE):
            return
        if not target.startswith("baton/"):
            yield f'{name}: "{target}" is not as an installed Baton has it ' \
                  '("baton/...")'
            return
        target = target.removeprefix("baton/")
    if target not in files:
        yield f'{name}: "{target}" is no file of the tree (write the path ' \
              'from the root)'
        return
    own, other = layer_of(name), layer_of(target)
    if other != own and other not in LAYERS[own]:
        yield f'{name}: {own} must not include {other} ("{target}")'


def check_file(name, text, files):
    """The rules that file `name` breaks."""
    if not text.startswith(LICENCE):
        yield f"{name}: does not begin with the licence header"
    if name.endswith(".h") and "#pragma once" not in text:
        yield f"{name}: has no #pragma once"
    for match in CONDITIONAL.finditer(text):
        yield f"{name}: '{match.group().strip()}': core/no_cuda answers " \
              "for an absent CUDA, not the preprocessor"
    for quote, target in INCLUDE.findall(text):
        yield from check_include(name, quote, target, files)


def check_tree(root):
    """All broken rules of the tree, and how many files were read."""
    tops = sorted({layer.split("/")[0] for layer in LAYERS})
    found = [p for top in tops for p in sorted((root / top).rglob("*"))
             if p.is_file()]
    files = {p.relative_to(root).as_posix(): p for p in found}
    sources = [n for n in files if n.endswith((".h", ".cc", ".cu", ".cuh"))]
    broken = [line for name in sources for line in
              check_file(name, files[name].read_text(encoding="utf-8"), files)]
    return broken, len(sources)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                        pathlib.Path(__file__).parent.parent)
    broken, count = check_tree(root)
    for line in broken:
        print(line)
    if count == 0:
        print(f"{root}: no source files")
        return 1
    if not broken:
        print(f"{count} files keep to their layers")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
