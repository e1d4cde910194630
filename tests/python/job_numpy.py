# SPDX-License-Identifier: MIT
"""What each rank does with NumPy arrays."""
import gridcoll
import numpy as np

from job import raises, same


def reductions(world):
    n, me = world.size, world.rank
    for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "intp", "longlong"):
        a = np.arange(6, dtype=dtype).reshape(2, 3)
        got = world.allreduce(a + me, np.zeros((2, 3), dtype))
        assert np.array_equal(got, n * a + n * (n - 1) // 2), (dtype, got)
        got = world.allreduce(a + me, op=gridcoll.MAX)
        assert np.array_equal(got, a + n - 1) and got.dtype == dtype, (dtype, got)
    flags = np.array([me == 0, me < 3, False])
    assert np.array_equal(world.allreduce(flags, op=gridcoll.BOR), [True, True, False])
    scalar = np.array(2.5)
    same(float(world.allreduce(scalar, op=gridcoll.PROD)), 2.5 ** n)
    big = np.full(3_000_000, me + 1.0)
    assert (world.allreduce(big, op=gridcoll.AVG) == (n + 1) / 2).all()


def moves(world):
    n, me = world.size, world.rank
    rows = world.allgather(np.arange(4) + 10 * me, np.empty((n, 4), int))
    assert np.array_equal(rows, [np.arange(4) + 10 * r for r in range(n)])
    for dtype in (">i4", "c16", "U3", [("x", "i2"), ("Other", "f8")]):  # nothing to compute with, but moved
        a = np.zeros(3, dtype)
        if me == 1:
            a[:] = np.array([1, 2, 3]).astype(">i4") if dtype == ">i4" else \
                np.array([1, 2, 3j]) if dtype == "c16" else \
                np.array(["a", "bc", "def"]) if dtype == "U3" else (7, 0.5)
        wanted = a.copy() if me == 1 else None
        world.bcast(a, root=1)
        same(a[2], {">i4": 3, "c16": 3j, "U3": "def"}.get(dtype) if isinstance(dtype, str)
             else np.array((7, 0.5), dtype))
        assert wanted is None or (wanted == a).all()
    turned = np.arange(6.0).reshape(2, 3)[:, ::-1]
    world.bcast(np.ascontiguousarray(turned))


def refusals(world):
    a = np.arange(12.0).reshape(3, 4)
    raises(ValueError, "send: numpy.ndarray is not C-contiguous", world.allreduce, a.T)
    raises(ValueError, "is not C-contiguous", world.allreduce, a[:, 1:])
    raises(ValueError, "numpy.ascontiguousarray", world.bcast, a[::2])
    frozen = a.copy()
    frozen.flags.writeable = False
    raises(ValueError, "recv: numpy.ndarray is read-only", world.allreduce, a, frozen)
    raises(TypeError, "are references", world.bcast, np.array([None, 1]))
    raises(TypeError, "are references", world.bcast, np.zeros(2, [("Name", "i4"), ("o", "O")]))
    raises(TypeError, "cannot be reduced", world.allreduce, np.zeros(2, ">f8"))
    raises(TypeError, "cannot be reduced", world.allreduce, np.zeros(2, "c16"))
    raises(TypeError, "cannot be reduced", world.allreduce, np.zeros(2, "longdouble"))
    raises(TypeError, "buf: numpy.ndarray: ", world.bcast, np.zeros(2, "M8[s]"))
    raises(TypeError, "SUM of bool", world.allreduce, np.zeros(2, bool))
    raises(TypeError, "expected the same", world.allgather, np.zeros(1, "f4"), np.zeros(3, "i4"))
    raises(TypeError, "expected the same", world.allgather, np.zeros(4, ">i4"),
           np.zeros(48, "c"))
    world.barrier()


def main():
    with gridcoll.init() as world:
        reductions(world)
        moves(world)
        refusals(world)
    print("done")


if __name__ == "__main__":
    main()
