# SPDX-License-Identifier: MIT
"""Collective operations between the ranks of a gridcoll job, on anything that has the buffer
protocol: NumPy arrays, array.array, bytearray, memoryview, ctypes arrays.

    import gridcoll
    import numpy

    with gridcoll.init() as world:
        weights = numpy.full(1000, world.rank, dtype="float32")
        world.allreduce(weights, op=gridcoll.AVG)
        if world.rank == 0:
            print(weights[0], "on", world.size, "ranks")

Started by `gridcoll-run -n 4 python3 program.py`. Buffers must be C-contiguous; nothing is copied.
Calls wait for their end and let other threads of the interpreter run meanwhile; one thread at a time
may be in a call, unless init(progress_thread=True). Failures raise gridcoll.Error.

The C library is libgridcoll.so.0 of the installation that this module came with, else what the dynamic
linker finds; the environment variable GRIDCOLL_LIBRARY names another.
"""

from ._comm import Comm, init
from ._library import Error
from ._types import (AVG, BAND, BFLOAT16, BOR, BXOR, BYTE, FLOAT16, FLOAT32, FLOAT64, INT8, INT16,
                     INT32, INT64, MAX, MIN, PROD, SUM, UINT8, UINT16, UINT32, UINT64, Op, Type)

try:
    from ._installed import VERSION as __version__
except ImportError:  # in the source tree
    __version__ = "0+source"

__all__ = [
    "Comm", "Error", "Op", "Type", "init",
    "SUM", "PROD", "MIN", "MAX", "BAND", "BOR", "BXOR", "AVG",
    "BYTE", "INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64",
    "FLOAT32", "FLOAT64", "FLOAT16", "BFLOAT16",
]
