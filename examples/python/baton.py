# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Uses Baton from Python, by its C interface (baton/tools/c/baton.h) and ctypes.

    with baton.join(exports={"double": lambda x: [[2 * v for v in x[0]]]}) as self:
        print(self.call("worker1", "double", [1.0, 2.0]))

Tensors are lists of f32 here; for large ones use memoryview and
baton_tensor_data. BATON_C_LIBRARY is the path of libbaton_c.so if the loader does
not find it.
"""

import ctypes
import os

F32 = 0
try:
    _c = ctypes.CDLL(os.environ.get("BATON_C_LIBRARY", "libbaton_c.so"))
except OSError as error:
    raise ImportError(f"{error}; BATON_C_LIBRARY names Baton's libbaton_c.so") from None
_Function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p),
                             ctypes.c_int, ctypes.c_void_p)


class _Export(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("function", _Function),
                ("context", ctypes.c_void_p)]


class _Options(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("rendezvous", ctypes.c_char_p),
                ("world_size", ctypes.c_int), ("exports", ctypes.POINTER(_Export)),
                ("exports_count", ctypes.c_int)]


def _declare(name, result, *arguments):
    function = getattr(_c, name)
    function.restype, function.argtypes = result, arguments


_declare("baton_error", ctypes.c_char_p)
_declare("baton_tensor_new", ctypes.c_void_p, ctypes.c_int, ctypes.c_int,
         ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p)
_declare("baton_tensor_free", None, ctypes.c_void_p)
_declare("baton_tensor_bytes", ctypes.c_int64, ctypes.c_void_p)
_declare("baton_tensor_data", ctypes.c_void_p, ctypes.c_void_p)
_declare("baton_results_add", None, ctypes.c_void_p, ctypes.c_void_p)
_declare("baton_results_fail", None, ctypes.c_void_p, ctypes.c_char_p)
_declare("baton_join", ctypes.c_void_p, ctypes.POINTER(_Options))
_declare("baton_name", ctypes.c_char_p, ctypes.c_void_p)
_declare("baton_call", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p,
         ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int,
         ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_double)
_declare("baton_leave", ctypes.c_int, ctypes.c_void_p)


class Error(Exception):
    """A call of Baton failed; the text is baton_error's."""


def _failed():
    return Error(_c.baton_error().decode())


def _tensor(values):
    elements = (ctypes.c_float * len(values))(*values)
    shape = (ctypes.c_int64 * 1)(len(values))
    tensor = _c.baton_tensor_new(F32, 1, shape, elements)
    if not tensor:
        raise _failed()
    return tensor


def _values(tensor):
    count = _c.baton_tensor_bytes(tensor) // ctypes.sizeof(ctypes.c_float)
    return list((ctypes.c_float * count).from_address(
        _c.baton_tensor_data(tensor))) if count else []


def _exported(function):
    """Returns a C callback that calls `function` with lists."""

    def run(_, inputs, count, results):
        try:
            for output in function([_values(inputs[i]) for i in range(count)]):
                tensor = _tensor(output)
                _c.baton_results_add(results, tensor)
                _c.baton_tensor_free(tensor)
        except Exception as error:  # exceptions must not pass through C
            _c.baton_results_fail(results, str(error).encode())

    return _Function(run)


class Worker:
    """Represents this process as a worker of its cluster, until `leave`."""

    def __init__(self, exports):
        self._functions = {name: _exported(f) for name, f in exports.items()}
        table = (_Export * len(exports))(*[
            _Export(name.encode(), f, None) for name, f in self._functions.items()])
        options = _Options(exports=table, exports_count=len(exports))
        self._worker = _c.baton_join(ctypes.byref(options))
        if not self._worker:
            raise _failed()
        self.name = _c.baton_name(self._worker).decode()

    def call(self, to, function, *inputs, seconds=60.0):
        """Calls a function that worker `to` offers; returns its outputs as lists."""
        tensors = [_tensor(values) for values in inputs]
        outputs = (ctypes.c_void_p * 64)()
        count = _c.baton_call(self._worker, to.encode(), function.encode(),
                              (ctypes.c_void_p * len(tensors))(*tensors),
                              len(tensors), outputs, len(outputs), seconds)
        for tensor in tensors:
            _c.baton_tensor_free(tensor)
        if count < 0:
            raise _failed()
        results = [_values(outputs[i]) for i in range(count)]
        for i in range(count):
            _c.baton_tensor_free(outputs[i])
        return results

    def leave(self):
        worker, self._worker = self._worker, None
        if worker and _c.baton_leave(worker) != 0:
            raise _failed()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.leave()


def join(exports=None):
    """Joins the cluster that baton-run started this process for."""
    return Worker(exports or {})
