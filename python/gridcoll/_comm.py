# SPDX-License-Identifier: MIT
"""The world and its operations."""

import ctypes

from ._library import Error, Options, Status, check, library
from ._types import Buffer, Op

_IN_PLACE = ctypes.c_void_p(-1)


def init(progress_thread=False):
    """Joins the job that gridcoll-run started, waits until all ranks have joined, and returns the
    world. With progress_thread, data moves while the program computes, and any thread may make calls.

    Error with code NOLAUNCHER where there is no job; OSError where there is no library.
    """
    handle = ctypes.c_void_p()
    options = Options(progress_thread=bool(progress_thread))
    check(library().gcoll_init_options(ctypes.byref(handle), ctypes.byref(options)))
    return Comm(handle)


class Comm:
    """A group of ranks; init() makes the one of all, the world.

    As a context manager it leaves the job in the end. After an exception it aborts the job first,
    since the other ranks would wait for this one: their calls raise Error with code ABORTED.
    """

    def __init__(self, handle):
        self._handle = handle
        self._lib = library()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        ends_well = kind is None or (kind is SystemExit and value.code in (None, 0))
        if not ends_well and self._handle is not None:
            self.abort(f"{kind.__name__}: {value}")
        self.finalize()

    def __repr__(self):
        if self._handle is None:
            return "<gridcoll.Comm, finalized>"
        return f"<gridcoll.Comm, rank {self.rank} of {self.size}>"

    def _comm(self):
        if self._handle is None:
            raise Error(Status.INVAL, "the world was finalized, expected no more calls")
        return self._handle

    def _checked_rank(self, what, rank):
        if not 0 <= rank < self.size:
            raise ValueError(f"{what}: {rank}, expected a rank from 0 to {self.size - 1}")
        return rank

    def finalize(self):
        """Waits until all ranks have come here, then leaves the job; after a failure waits for
        nobody. Once more is legal, and does nothing."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._lib.gcoll_finalize(handle)

    def abort(self, reason):
        """Ends the operations of all ranks: they raise Error with code ABORTED and this reason."""
        self._lib.gcoll_comm_abort(self._comm(), reason.encode(errors="replace"))

    def agree(self, flags):
        """The bits that are set in all ranks' `flags`, the same everywhere, also after a failure: did all
        come so far? Error where some rank took no part."""
        common = ctypes.c_uint64(flags)
        check(self._lib.gcoll_comm_agree(self._comm(), ctypes.byref(common)))
        return common.value

    @property
    def failed_rank(self):
        """The rank to which the failure is laid that a call has raised, or None."""
        rank = self._lib.gcoll_failed_rank(self._comm())
        if rank < -1:  # which is "none"
            check(rank)
        return rank if rank >= 0 else None

    def shrink(self):
        """After a failure, in a job of gridcoll-run --survive: waits for all ranks that live, and is from
        then on the world of these. Returns each former rank's number in it, None where it is gone."""
        before, after = self._comm(), ctypes.c_void_p()
        check(self._lib.gcoll_comm_shrink(before, ctypes.byref(after)))
        self._handle = after
        now = [self._lib.gcoll_comm_translate(before, r, after)
               for r in range(self._lib.gcoll_size(before))]
        return [r if r >= 0 else None for r in now]

    @property
    def rank(self):
        """This process's number, from 0 to size - 1."""
        return self._lib.gcoll_rank(self._comm())

    @property
    def size(self):
        """How many ranks there are."""
        return self._lib.gcoll_size(self._comm())

    @property
    def clusters(self):
        """How many clusters the ranks live in."""
        return self._lib.gcoll_clusters(self._comm())

    def host(self, rank):
        """Name of a rank's host, as the grid file has it."""
        return self._lib.gcoll_host(self._comm(), self._checked_rank("host", rank)).decode()

    def cluster(self, rank):
        """Number of a rank's cluster, from 0 to clusters - 1."""
        return self._lib.gcoll_cluster(self._comm(), self._checked_rank("cluster", rank))

    def set(self, key, value):
        """Chooses how later operations run; see gcoll_comm_set(3). The same on every rank."""
        check(self._lib.gcoll_comm_set(self._comm(), key.encode(), str(value).encode()))

    def barrier(self):
        """Ends on no rank before every rank has begun it."""
        check(self._lib.gcoll_barrier(self._comm()))

    def bcast(self, buf, root=0, type=None):
        """What rank `root` has in `buf` goes to `buf` of every other rank. Returns `buf`.

        Of the same size and format on all ranks. Only the root's may be read-only.
        """
        comm = self._comm()
        self._checked_rank("root", root)
        with Buffer("buf", buf, self.rank != root, type) as b:
            check(self._lib.gcoll_bcast(b.address, b.count, b.type, root, comm))
        return buf

    def allreduce(self, send, recv=None, op=Op.SUM, type=None):
        """recv = op over all ranks' `send`, element by element; the same bits on every rank.

        Without `recv` the result takes the place of `send`. Returns the buffer that has the result.
        `type` says what the elements are where the buffer cannot: BFLOAT16 in an array of uint16.
        """
        comm, op = self._comm(), Op(op)
        if recv is None:
            with Buffer("send", send, True, type) as r:
                r.check_op(op)
                check(self._lib.gcoll_allreduce(_IN_PLACE, r.address, r.count, r.type, op, comm))
            return send
        with Buffer("send", send, False, type) as s, Buffer("recv", recv, True, type) as r:
            s.check_op(op)
            _check_pair(s, r, 1)
            check(self._lib.gcoll_allreduce(s.address, r.address, s.count, s.type, op, comm))
        return recv

    def allgather(self, send, recv, type=None):
        """Each rank's `send` goes to its place in every rank's `recv`, in the order of ranks. Returns
        `recv`, which is `size` times as long. Where `send` is None, this rank's part is in its place
        in `recv` already; then it must be None on all ranks.
        """
        comm = self._comm()
        if send is None:
            with Buffer("recv", recv, True, type) as r:
                if r.count % self.size:
                    raise ValueError(f"recv: {r.count} elements, expected as many from each of "
                                     f"{self.size} ranks")
                check(self._lib.gcoll_allgather(_IN_PLACE, r.address, r.count // self.size, r.type,
                                                comm))
            return recv
        with Buffer("send", send, False, type) as s, Buffer("recv", recv, True, type) as r:
            _check_pair(s, r, self.size)
            check(self._lib.gcoll_allgather(s.address, r.address, s.count, s.type, comm))
        return recv


def _check_pair(send, recv, times):
    """recv has `times` as many elements as send, of the same type, elsewhere."""
    alike = send.type == recv.type and send.computes == recv.computes
    if not alike or (not send.computes and send.format != recv.format):
        raise TypeError(f"recv has elements of format {recv.format!r}, send of {send.format!r}: "
                        "expected the same")
    if recv.nbytes != send.nbytes * times:
        raise ValueError(f"recv has {recv.nbytes} bytes, expected {send.nbytes * times}: "
                         f"{times} x the {send.nbytes} of send")
    if send.overlaps(recv):
        raise ValueError("send and recv overlap; without one of them the call works in place")
