# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Each rule of cmake/check_includes.py catches the tree that breaks it."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cmake"))
import check_includes  # noqa: E402


def broken(files):
    """The lines reported for a tree of {path: text after the licence}."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(check_includes.LICENCE + text)
        return check_includes.check_tree(root)[0]


CORE = {"core/tensor.h": "#pragma once\n"}
RPC = {"rpc/agent.h": "#pragma once\n"}


class CheckIncludes(unittest.TestCase):

    def test_accepts_arrows_that_point_down(self):
        self.assertEqual([], broken({
            **CORE, **RPC,
            "autograd/a.cc": '#include <vector>\n#include "core/tensor.h"\n',
            "autograd/distributed/e.cc": '#include "rpc/agent.h"\n'}))

    def test_rejects_a_back_edge(self):
        lines = broken({**RPC, "core/a.cc": '#include "rpc/agent.h"\n'})
        self.assertEqual(
            ['core/a.cc: core must not include rpc ("rpc/agent.h")'], lines)

    def test_rpc_never_includes_autograd(self):
        self.assertEqual(1, len(broken({
            "autograd/v.h": "#pragma once\n",
            "rpc/a.cc": '#include "autograd/v.h"\n'})))

    def test_only_distributed_folders_include_rpc(self):
        self.assertEqual(1, len(broken(
            {**RPC, "models/nn/a.cc": '#include "rpc/agent.h"\n'})))

    def test_libraries_are_confined(self):
        for name, header in [("rpc/a.h", "grpcpp/grpcpp.h"),
                             ("core/ops/a.cc", "dnnl.hpp"),
                             ("rpc/a.cc", "omp.h"),
                             ("core/a.cc", "cuda_runtime.h"),
                             ("rpc/a.cc", "mutex"),
                             ("tools/a.cc", "gtest/gtest.h")]:
            text = f"#pragma once\n#include <{header}>\n"
            self.assertEqual(1, len(broken({name: text})), header)

    def test_rejects_an_include_that_does_not_resolve(self):
        self.assertEqual(1, len(broken(
            {**CORE, "core/a.cc": '#include "tensor.h"\n'})))
        self.assertEqual(1, len(broken(
            {"rpc/a.cc": '#include "rpc/wire.pb.h"\n'})))
        self.assertEqual([], broken(
            {"rpc/wire.proto": "", "rpc/a.cc": '#include "rpc/wire.pb.h"\n'}))

    def test_rejects_conditional_code_for_cuda(self):
        self.assertEqual(1, len(broken(
            {"core/a.cc": "#ifdef BATON_HAS_CUDA\n#endif\n"})))

    def test_wants_guard_and_licence(self):
        self.assertEqual(1, len(broken({"core/a.h": "\n"})))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "core" / "a.cc"
            path.parent.mkdir()
            path.write_text("int x;\n")
            self.assertEqual(
                1, len(check_includes.check_tree(pathlib.Path(folder))[0]))


if __name__ == "__main__":
    unittest.main()
