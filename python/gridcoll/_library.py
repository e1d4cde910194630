# SPDX-License-Identifier: MIT
"""The C library: where it is, the functions that are used of it, and its errors."""

import ctypes
import enum
import os
import re

SONAME = "libgridcoll.so.0"


class Status(enum.IntEnum):
    """What calls return (enum gcoll_status)."""
    OK = 0
    INVAL = -1
    NOMEM = -2
    SYS = -3
    PARSE = -4
    PROTO = -5
    PEER = -6
    TIMEOUT = -7
    MISMATCH = -8
    CORRUPT = -9
    ABORTED = -10
    UNSUPPORTED = -11
    NOLAUNCHER = -12
    IO = -13
    VERIFY = -14
    FORKED = -15


class Error(Exception):
    """A call of the library has failed.

    code  the status: gridcoll.Error.PEER ..., negative as in gridcoll.h
    rank  the rank that the text names first, as the one that failed; None where it names none
    text  what happened: the rank, its host and the cause
    """

    def __init__(self, code, text):
        super().__init__(code, text)
        named = re.search(r"\brank (\d+)\b", text)
        self.code = Status(code) if code in Status._value2member_map_ else code
        self.rank = int(named[1]) if named else None
        self.text = text

    def __str__(self):
        return self.text


for _status in Status:
    setattr(Error, _status.name, _status)


class Options(ctypes.Structure):
    """struct gcoll_options"""
    _fields_ = [("progress_thread", ctypes.c_int), ("uv_loop", ctypes.c_void_p)]


_COMM, _BUFFER, _COUNT, _ENUM, _INT = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int,
                                       ctypes.c_int)
_TEXT = ctypes.c_char_p

# Result and arguments.
_FUNCTIONS = {
    "gcoll_init_options": (_INT, [ctypes.POINTER(_COMM), ctypes.POINTER(Options)]),
    "gcoll_finalize": (None, [_COMM]),
    "gcoll_rank": (_INT, [_COMM]),
    "gcoll_size": (_INT, [_COMM]),
    "gcoll_host": (_TEXT, [_COMM, _INT]),
    "gcoll_cluster": (_INT, [_COMM, _INT]),
    "gcoll_clusters": (_INT, [_COMM]),
    "gcoll_strerror": (_TEXT, [_INT]),
    "gcoll_last_error": (_TEXT, []),
    "gcoll_comm_set": (_INT, [_COMM, _TEXT, _TEXT]),
    "gcoll_comm_abort": (None, [_COMM, _TEXT]),
    "gcoll_comm_agree": (_INT, [_COMM, ctypes.POINTER(ctypes.c_uint64)]),
    "gcoll_comm_shrink": (_INT, [_COMM, ctypes.POINTER(_COMM)]),
    "gcoll_comm_translate": (_INT, [_COMM, _INT, _COMM]),
    "gcoll_failed_rank": (_INT, [_COMM]),
    "gcoll_bcast": (_INT, [_BUFFER, _COUNT, _ENUM, _INT, _COMM]),
    "gcoll_allreduce": (_INT, [_BUFFER, _BUFFER, _COUNT, _ENUM, _ENUM, _COMM]),
    "gcoll_allgather": (_INT, [_BUFFER, _BUFFER, _COUNT, _ENUM, _COMM]),
    "gcoll_barrier": (_INT, [_COMM]),
}


def _path():
    """What to hand to the dynamic linker."""
    named = os.environ.get("GRIDCOLL_LIBRARY")
    if named:
        return named
    try:
        from ._installed import LIBRARY_DIR
    except ImportError:  # in the source tree
        return SONAME
    beside = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), LIBRARY_DIR,
                                           SONAME))
    return beside if os.path.exists(beside) else SONAME


_loaded = None


def library():
    """The library with its functions declared. OSError, with what to do, where there is none."""
    global _loaded
    if _loaded is None:
        path = _path()
        try:
            lib = ctypes.CDLL(path)
        except OSError as e:
            raise OSError(f"gridcoll: the C library cannot be loaded: {e}; set GRIDCOLL_LIBRARY to the "
                          f"path of {SONAME}, or LD_LIBRARY_PATH to its directory") from None
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(lib, name)
            function.restype, function.argtypes = result, arguments
        _loaded = lib
    return _loaded


def check(status):
    """Raises Error for what is not OK."""
    if status == Status.OK:
        return
    lib = library()
    text = lib.gcoll_last_error() or lib.gcoll_strerror(status)
    raise Error(status, text.decode(errors="replace"))
