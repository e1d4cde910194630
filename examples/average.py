#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every rank has a vector; in the end each has their average, and rank 0 all of them.

    gridcoll-run -n 4 python3 average.py
"""
import sys

import gridcoll
import numpy


def main():
    with gridcoll.init() as world:
        mine = numpy.linspace(0, world.rank, 5)
        average = world.allreduce(mine, numpy.empty_like(mine), op=gridcoll.AVG)
        everybody = world.allgather(mine, numpy.empty((world.size, mine.size)))
        if not numpy.allclose(everybody.mean(axis=0), average):
            return f"rank {world.rank}: the average is not that of all vectors"
        print(f"rank {world.rank} of {world.size} on {world.host(world.rank)}: average {average}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
