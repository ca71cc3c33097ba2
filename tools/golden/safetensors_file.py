# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes numpy arrays as a safetensors file, with nothing but the standard library and numpy."""
import json
import struct

import numpy as np

DTYPES = {'float32': 'F32', 'float64': 'F64', 'int64': 'I64', 'uint8': 'U8'}


def write(path, arrays, metadata=None):
    header, offset, blobs = {}, 0, []
    if metadata:
        header['__metadata__'] = metadata
    for name, array in sorted(arrays.items()):
        array = np.asarray(array)
        blob = array.tobytes()  # row-major
        header[name] = dict(dtype=DTYPES[array.dtype.name], shape=list(array.shape),
                            data_offsets=[offset, offset + len(blob)])
        offset += len(blob)
        blobs.append(blob)
    text = json.dumps(header, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text)
        for blob in blobs:
            file.write(blob)
