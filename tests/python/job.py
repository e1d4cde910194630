# SPDX-License-Identifier: MIT
"""What each rank does in the tests of the Python module: job.py CASE."""
import array
import atexit
import ctypes
import multiprocessing
import os
import signal
import struct
import sys
import threading
import time
import warnings

import gridcoll


def same(got, wanted):
    if got != wanted:
        raise AssertionError(f"got {got!r}, wanted {wanted!r}")


def raises(kind, words, call, *args, **kwargs):
    """call(...) raises `kind`, with these words in its text."""
    try:
        call(*args, **kwargs)
    except kind as e:
        if words not in str(e):
            raise AssertionError(f"{kind.__name__} without {words!r}: {e}") from e
        return
    raise AssertionError(f"no {kind.__name__}: {words}")


def moves(world):
    """Buffers of several kinds, moved and reduced."""
    n, me = world.size, world.rank
    text = bytearray(b"hello") if me == 1 else bytearray(5)
    same(world.bcast(text, root=1), b"hello")
    world.bcast(b"only read" if me == 0 else bytearray(9))

    for letter in "bBhHiIlLqQfd":
        numbers = array.array(letter, [me + 1, 2])
        same(world.allreduce(numbers), array.array(letter, [n * (n + 1) // 2, 2 * n]))
        got = array.array(letter, [0, 0])
        world.allreduce(array.array(letter, [me + 1, 2]), got, gridcoll.MAX)
        same(got, array.array(letter, [n, 2]))

    for op, wanted in ((gridcoll.PROD, 6), (gridcoll.MIN, 1), (gridcoll.AVG, 2),
                       (gridcoll.BOR, 3), (gridcoll.BAND, 0), (gridcoll.BXOR, 0)):
        same(world.allreduce(array.array("i", [me + 1]), op=op)[0], wanted)

    got = world.allgather(array.array("h", [me, -me]), array.array("h", [9] * (2 * n)))
    same(list(got), [v for r in range(n) for v in (r, -r)])
    got = (ctypes.c_double * n)()
    got[me] = me + 0.5
    same(list(world.allgather(None, got)), [r + 0.5 for r in range(n)])
    part = memoryview(bytearray(8))[4:]
    world.allgather(memoryview(b"abcdef")[me:me + 1], part[:n])
    same(bytes(part[:n]), b"abc")

    # 16-bit floats: one has a letter, the other is told.
    half = memoryview(bytearray(struct.pack("2e", me, 0.5))).cast("B").cast("e") \
        if sys.version_info >= (3, 12) else None
    if half is not None:
        same(list(world.allreduce(half)), [3.0, 1.5])
    brain = array.array("H", [0x3f80])  # 1.0
    same(world.allreduce(brain, type=gridcoll.BFLOAT16)[0], 0x4040)  # 3.0

    world.bcast(bytearray())
    world.barrier()


def settings(world):
    """Facts, and what is chosen."""
    same((world.size, world.clusters, world.cluster(0)), (3, 1, 0))
    same(world.host(world.rank), f"local{world.rank}")
    same(repr(world), f"<gridcoll.Comm, rank {world.rank} of 3>")
    world.set("bcast", "chain:segment=64KiB")
    world.set("order", "fixed")
    raises(gridcoll.Error, "unknown algorithm", world.set, "bcast", "fastest")
    raises(ValueError, "a rank from 0 to 2", world.host, 3)
    same(world.bcast(array.array("i", [7 - world.rank])), array.array("i", [7]))
    world.finalize()
    world.finalize()
    raises(gridcoll.Error, "finalized", world.barrier)
    same(repr(world), "<gridcoll.Comm, finalized>")


def refusals(world):
    """What cannot be moved is refused by each rank for itself, and the job goes on."""
    ints = array.array("i", range(8))
    every = memoryview(ints)[::2]
    raises(ValueError, "buf: memoryview is not C-contiguous", world.bcast, every)
    raises(ValueError, "send: bytes is read-only", world.allreduce, b"abcd")
    raises(ValueError, "recv: bytes is read-only", world.allgather, bytearray(1), b"abc")
    raises(TypeError, "buf: int does not have the buffer protocol", world.bcast, 7)
    raises(TypeError, "buf: str does not have the buffer protocol", world.bcast, "text")
    raises(TypeError, "SUM of opaque bytes", world.allreduce, bytearray(4), type=gridcoll.BYTE)
    raises(TypeError, "BOR of floats", world.allreduce, array.array("f", [1]), op=gridcoll.BOR)
    raises(TypeError, "are references", world.bcast, (ctypes.py_object * 2)())
    raises(TypeError, "expected the same", world.allreduce, ints, array.array("I", range(8)))
    raises(ValueError, "recv has 16 bytes, expected 32", world.allreduce, ints,
           array.array("i", range(4)))
    raises(ValueError, "expected 96: 3 x the 32 of send", world.allgather, ints, array.array("i", ints))
    raises(ValueError, "from each of 3 ranks", world.allgather, None, ints)
    view = memoryview(ints)
    raises(ValueError, "overlap", world.allreduce, view[0:4], view[2:6])
    raises(ValueError, "no whole number of INT32", world.bcast, bytearray(5), type=gridcoll.INT32)
    raises(ValueError, "root: 3, expected a rank from 0 to 2", world.bcast, ints, 3)
    raises(ValueError, "99 is not a valid Op", world.allreduce, ints, op=99)
    one = array.array("i", [1])
    raises(ValueError, "99 is not", world.allreduce, one, op=99)
    same(world.allreduce(one)[0], 3)
    one.append(1)  # which it would not allow as long as somebody held its buffer


def threads(world):
    """Other threads of the interpreter run while a call waits."""
    if world.rank == 0:
        gone = threading.Event()
        ticks = []

        def tick():
            while not gone.wait(0.01):
                ticks.append(1)

        t = threading.Thread(target=tick)
        t.start()
        world.barrier()
        gone.set()
        t.join()
        if len(ticks) < 10:
            raise AssertionError(f"the other thread ran {len(ticks)} times in half a second")
    else:
        time.sleep(0.5)
        world.barrier()


def foreign(world, results):
    """What a child by fork gets to see."""
    told = []
    for call in (world.barrier, lambda: world.bcast(bytearray(1)), lambda: world.set("order", "any"),
                 lambda: gridcoll.init(), lambda: world.failed_rank):
        try:
            call()
        except gridcoll.Error as e:
            told.append(e.code == gridcoll.Error.FORKED and "child by fork" in e.text)
    world.abort("by a child")
    results.put((all(told), len(told), world.rank, world.size))


def forks(world):
    """Children by fork are no ranks, and the rank goes on."""
    # Python 3.12 and later warn of fork beside threads, which a Pool has.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    fork = multiprocessing.get_context("fork")
    results = fork.SimpleQueue()
    with world:
        numbers = array.array("i", range(100000))
        world.allreduce(numbers)
        for _ in range(2):
            child = fork.Process(target=foreign, args=(world, results))
            child.start()
            child.join()
            same((child.exitcode, results.get()), (0, (True, 5, world.rank, 3)))
            world.barrier()
        with fork.Pool(2) as pool:
            same(pool.map(abs, range(-9, 0)), list(range(9, 0, -1)))
        for end, status in ((sys.exit, 0), (world.finalize, 0), (lambda: sys.exit(3), 3),
                            (lambda: 1 / 0, 1)):
            pid = os.fork()
            if not pid:
                atexit.register(world.finalize)
                sys.stdout = sys.stderr = open(os.devnull, "w")
                end()
                sys.exit()  # by way of the block's end, and what is done at exit
            same(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), status)
            world.allreduce(numbers)
    print("done")


def dies(world):
    """The death of a rank is an error that names it."""
    if world.rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    numbers = array.array("i", [1])
    try:
        while True:
            world.allreduce(numbers)
    except gridcoll.Error as e:
        same((e.code, e.rank), (gridcoll.Error.PEER, 2))
        if "local2" not in e.text or str(e) != e.text:
            raise AssertionError(e.text) from e
        print("rank 2 is missed")


def shrinks(world):
    """Those that live go on, and know who is who."""
    me, numbers = world.rank, array.array("i", [1])
    same(world.failed_rank, None)
    same(world.agree(0b110 if me else 0b011), 0b010)
    with world:
        if me == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            while True:
                world.allreduce(numbers)
        except gridcoll.Error as e:
            same((e.code, world.failed_rank), (gridcoll.Error.PEER, 1))
        same(world.shrink(), [0, None, 1])
        same((world.rank, world.size, world.failed_rank), (me // 2, 2, None))
        raises(gridcoll.Error, "nothing has failed", world.shrink)
        same(world.allreduce(array.array("i", [5 + me]))[0], 12)
    print("done")


def throws(world):
    """A rank's exception ends the job, and tells the others why."""
    with world:
        if world.rank == 1:
            raise KeyError("no such weights")
        try:
            world.barrier()
        except gridcoll.Error as e:
            same((e.code, e.rank), (gridcoll.Error.ABORTED, 1))
            print("told: " + e.text)


def main():
    case = globals()[sys.argv[1]]
    world = gridcoll.init(progress_thread=case is threads)
    case(world)
    if case not in (throws, dies, forks, shrinks):
        world.finalize()
        print("done")


if __name__ == "__main__":
    main()
