#!/usr/bin/python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/images.safetensors: JPEG files in memory and what Pillow makes of them.

Debian: apt-get install python3-pil python3-numpy; run with /usr/bin/python3.
"""
import io
import pathlib

import numpy as np
from PIL import Image

import safetensors_file

OUT = pathlib.Path(__file__).resolve().parents[2] / 'tests' / 'golden' / 'images.safetensors'
HEIGHT, WIDTH = 37, 53


def picture():
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    waves = [127 + 120 * np.sin(x / 5), 127 + 120 * np.cos(y / 4), (x * y) % 256]
    return Image.fromarray(np.stack(waves, -1).astype(np.uint8), 'RGB')


def main():
    arrays = {}
    for mode in ('RGB', 'L', 'CMYK'):
        file = io.BytesIO()
        picture().convert(mode).save(file, 'JPEG', quality=90)
        arrays[f'{mode}.jpeg'] = np.frombuffer(file.getvalue(), np.uint8)
        arrays[f'{mode}.pixels'] = np.asarray(Image.open(file).convert('RGB'))
    for height, width in ((16, 20), (11, 90), (64, 80)):
        small = Image.fromarray(arrays['RGB.pixels']).resize((width, height), Image.BILINEAR)
        arrays[f'resize.{height}x{width}'] = np.asarray(small)
    safetensors_file.write(OUT, arrays)


if __name__ == '__main__':
    main()
