#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs two processes of Python: worker1 offers a function, the trainer calls it.

    export BATON_C_LIBRARY=build/release/tools/c/libbaton_c.so
    build/release/bin/baton-run --workers=1 --worker_program=examples/python/pair.py \
        -- examples/python/pair.py
"""

# [pair]
import signal
import sys

import baton


def normalized(inputs):
    if len(inputs) != 1:
        raise ValueError("normalized takes one tensor")
    total = sum(inputs[0])
    return [[value / total for value in inputs[0]]]


with baton.join(exports={"normalized": normalized}) as self:
    if self.name != "trainer":
        signal.pause()  # until baton-run ends it
    print(self.call("worker1", "normalized", [1.0, 3.0, 4.0]))
    try:
        self.call("worker1", "normalized")
        sys.exit("a call without inputs did not fail")
    except baton.Error as error:
        print(error)
# [end]
