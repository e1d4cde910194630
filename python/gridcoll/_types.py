# SPDX-License-Identifier: MIT
"""Types of elements and operations, and which buffers they are good for."""

import ctypes
import enum
import re
import sys


class Type(enum.IntEnum):
    """Element types of gridcoll.h (enum gcoll_type)."""
    BYTE = 0
    INT8 = 1
    UINT8 = 2
    INT16 = 3
    UINT16 = 4
    INT32 = 5
    UINT32 = 6
    INT64 = 7
    UINT64 = 8
    FLOAT32 = 9
    FLOAT64 = 10
    FLOAT16 = 11
    BFLOAT16 = 12

    @property
    def nbytes(self):
        return _SIZES[self]


class Op(enum.IntEnum):
    """Reductions of gridcoll.h (enum gcoll_op)."""
    SUM = 0
    PROD = 1
    MIN = 2
    MAX = 3
    BAND = 4
    BOR = 5
    BXOR = 6
    AVG = 7


globals().update(Type.__members__)
globals().update(Op.__members__)

_SIZES = dict(zip(Type, (1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 2, 2)))
_SIGNED = {1: Type.INT8, 2: Type.INT16, 4: Type.INT32, 8: Type.INT64}
_UNSIGNED = {1: Type.UINT8, 2: Type.UINT16, 4: Type.UINT32, 8: Type.UINT64}
_FLOATS = {2: Type.FLOAT16, 4: Type.FLOAT32, 8: Type.FLOAT64}
_BITWISE = (Op.BAND, Op.BOR, Op.BXOR)
_ON_BOOL = _BITWISE + (Op.MIN, Op.MAX)  # the others make values that are no bool
_OTHER_ORDER = ">!" if sys.byteorder == "little" else "<"

_SIMPLE, _WRITABLE = 0, 1  # flags of PyObject_GetBuffer


class _PyBuffer(ctypes.Structure):
    """Py_buffer, whose layout is part of Python's stable ABI."""
    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int]
_get_buffer.restype = ctypes.c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = [ctypes.POINTER(_PyBuffer)]
_release_buffer.restype = None


def natural_type(format, itemsize):
    """The type of a buffer's elements, or None where gridcoll has none that computes with them."""
    if format[:1] and format[0] in _OTHER_ORDER and itemsize > 1:
        return None
    letter = format.lstrip("@=<>!")
    if letter in ("b", "h", "i", "l", "q", "n"):
        return _SIGNED.get(itemsize)
    if letter in ("B", "H", "I", "L", "Q", "N", "?"):
        return _UNSIGNED.get(itemsize)
    if letter in ("e", "f", "d"):
        return _FLOATS.get(itemsize)
    return Type.BYTE if letter == "c" else None


class Buffer:
    """An argument of a call: its address stays valid, and its size as it is, until close().

    `what` names the argument in errors. TypeError for what cannot be a buffer of elements,
    ValueError for one that is read-only though it is written, or has gaps.
    """

    def __init__(self, what, obj, writable, type=None):
        self._held = None
        try:
            view = memoryview(obj)
        except TypeError:
            raise TypeError(f"{what}: {_name(obj)} does not have the buffer protocol") from None
        except ValueError as e:  # NumPy, of a dtype that the protocol has no letters for
            raise TypeError(f"{what}: {_name(obj)}: {e}; view it as bytes or integers, and name its "
                            "type where it is to be reduced") from None
        if not view.c_contiguous:
            raise ValueError(f"{what}: {_name(obj)} is not C-contiguous: its elements do not stand one "
                             "after the other; numpy.ascontiguousarray makes a copy where they do")
        if writable and view.readonly:
            raise ValueError(f"{what}: {_name(obj)} is read-only, and the result is written to it")
        if set(re.sub(":[^:]*:", "", view.format)) & set("OP&"):
            raise TypeError(f"{what}: elements of format {view.format!r} are references, which mean "
                            "nothing to another process")
        self.what, self.format, self.nbytes = what, view.format, view.nbytes
        self.type = self._type_of(view, type)
        self.count = view.nbytes // self.type.nbytes
        held = _PyBuffer()
        _get_buffer(view, ctypes.byref(held), _WRITABLE if writable else _SIMPLE)
        self._held = held
        self.address = held.buf

    def _type_of(self, view, type):
        if type is None:
            found = natural_type(view.format, view.itemsize)
            self.computes = found is not None
            return found if self.computes else Type.BYTE  # good enough to move it
        type = Type(type)
        if view.nbytes % type.nbytes:
            raise ValueError(f"{self.what}: {view.nbytes} bytes are no whole number of {type.name}")
        self.computes = True
        return type

    def check_op(self, op):
        """Raises TypeError where `op` cannot be applied to the elements."""
        if not self.computes:
            raise TypeError(f"{self.what}: elements of format {self.format!r} cannot be reduced; "
                            "integers and floats of the machine's byte order can")
        if self.format.lstrip("@=<>!") == "?" and op not in _ON_BOOL:
            raise TypeError(f"{self.what}: {op.name} of bool would make values that are no bool: "
                            "expected BAND, BOR, BXOR, MIN or MAX, or integers")
        if op in _BITWISE and self.type in (*_FLOATS.values(), Type.BFLOAT16):
            raise TypeError(f"{self.what}: {op.name} of floats is not defined: expected integers")
        if self.type == Type.BYTE and op not in _BITWISE:
            raise TypeError(f"{self.what}: {op.name} of opaque bytes is not defined: expected BAND, "
                            "BOR or BXOR, or numbers")

    def overlaps(self, other):
        return bool(self.nbytes and other.nbytes and self.address < other.address + other.nbytes
                    and other.address < self.address + self.nbytes)

    def close(self):
        if self._held is not None:
            _release_buffer(ctypes.byref(self._held))
            self._held = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def _name(obj):
    return f"{type(obj).__module__}.{type(obj).__qualname__}".removeprefix("builtins.")
