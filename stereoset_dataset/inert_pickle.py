"""Reads a data frame from a pickle without running anything that the pickle asks for.

A pickle is a program for a machine with a stack and a memory: it names functions, and opening it calls them. Here the
program is followed, not run: every name is answered with a note of what it was given, a name that a data frame has no
need of is refused, and so is what would make much out of little. What can be built is bounded by the pickle's own
length, in memory and in time. Neither pandas nor numpy is imported.
"""

import io
import pickle
import pickletools
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

# All that occurs in an object-typed DataFrame pickled by pandas 1.x.
_NAMES = {
    ("builtins", "slice"),
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.numeric", "_frombuffer"),
    ("pandas._libs.internals", "_unpickle_block"),
    ("pandas.core.frame", "DataFrame"),
    ("pandas.core.indexes.base", "Index"),
    ("pandas.core.indexes.base", "_new_Index"),
    ("pandas.core.indexes.numeric", "Int64Index"),
    ("pandas.core.indexes.range", "RangeIndex"),
    ("pandas.core.internals.managers", "BlockManager"),
}
_PLAIN = (str, int, float, type(None))
_DEPTH = 4  # containers in each other, in a cell; the annotators' labels take 2
_LONGEST = 80  # characters of a pickle's text inside a message


class RefusedPickle(pickle.UnpicklingError):
    """The pickle is not a data frame, or wants to be more than one."""


@dataclass(frozen=True, eq=False)
class _Name:
    """What a pickle calls by its module and name."""

    name: str


@dataclass(eq=False)
class _Made:
    """In place of what a call would have made: what was called, with which arguments, and the state set on it."""

    name: str
    arguments: tuple
    state: object = None


def read_data_frame(data: bytes) -> list[dict[str, Any]]:
    """The rows of a pickled pandas DataFrame whose columns all hold Python objects.

    Args:
        data: the pickle.

    Returns:
        One dictionary per row, by column name, in the frame's order.

    Raises:
        RefusedPickle: the pickle names anything beyond a data frame's parts, or is no such frame.
    """
    try:
        columns = _columns(_Machine().follow(data))
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    except RefusedPickle:
        raise
    except Exception as error:  # a hostile or broken pickle fails in as many ways as there are types
        raise RefusedPickle(f"The pickle is no data frame as pandas 1.x writes it ({_shown(str(error))}).") from error


class _Machine:
    """A pickle's stack and memory, and what each of its instructions does to them.

    A mark begins a stack of its own for the items of a container; what lay on the stack before waits below.

    Only what is small may be taken out of the memory again: a container that stands in several places can be made to
    stand for more than any machine holds.
    """

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memory: dict[int, Any] = {}

    def follow(self, data: bytes) -> Any:
        """What the pickle stands for."""
        program = io.BytesIO(data)
        for code in iter(partial(program.read, 1), pickle.STOP):
            if code not in _INSTRUCTIONS:
                raise ValueError(f"it holds the instruction {_NAMED.get(code, code)}" if code else "it has no end")
            read_argument, act = _INSTRUCTIONS[code]
            act(self, read_argument and read_argument(program))
        return self.stack.pop()

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def mark(self, _: Any) -> None:
        self.below.append(self.stack)
        self.stack = []

    def remember(self, place: int) -> None:
        self.memory[place] = self.stack[-1]

    def memorize(self, _: Any) -> None:
        self.memory[len(self.memory)] = self.stack[-1]

    def recall(self, place: int) -> None:
        found = self.memory[place]
        if not _is_small(found, _DEPTH):
            raise ValueError(f"a {type(found).__name__} stands in two places")
        self.stack.append(found)

    def items(self) -> list[Any]:
        """What lies above the last mark; the mark goes, too."""
        found, self.stack = self.stack, self.below.pop()
        return found

    def take(self, count: int) -> list[Any]:
        """The topmost items of the stack."""
        return [self.stack.pop() for _ in range(count)][::-1]

    def tuple(self, count: int | None) -> None:
        found = self.items() if count is None else self.take(count)  # first, for it may change the stack
        self.stack.append(tuple(found))

    def append(self, items: list[Any]) -> None:
        _expect(self.stack[-1], list).extend(items)

    def set_items(self, items: list[Any]) -> None:
        found = _expect(self.stack[-1], dict)
        keys = [_expect(key, str) for key in items[::2]]
        found.update(zip(keys, items[1::2], strict=True))

    def name(self, module: str, attribute: str) -> None:
        # The pair as a whole is looked up: a dotted name such as "DataFrame.eval" is another name.
        if (module, attribute) not in _NAMES:
            raise RefusedPickle(
                f"The pickle names {_shown(f'{module}.{attribute}')}, which no data frame needs: nothing was run; "
                "do not open this file by other means."
            )
        self.stack.append(_Name(attribute))

    def call(self, _: Any) -> None:
        called, arguments = self.take(2)
        self.stack.append(_Made(_expect(called, _Name).name, _expect(arguments, tuple)))

    def build(self, _: Any) -> None:
        made, state = self.take(2)
        _expect(made, _Made).state = state
        self.stack.append(made)

    def refuse_extension(self, code: int) -> NoReturn:
        raise RefusedPickle(f"The pickle uses the extension code {code}, which no data frame does: nothing was run.")

    def refuse_outside(self, pid: Any) -> NoReturn:
        text = repr(pid) if isinstance(pid, str) else f"a {type(pid).__name__}"
        raise RefusedPickle(f"The pickle refers to the outside object {_shown(text)}, which no data frame does.")


_ACTS = {
    "PROTO": lambda machine, _: None,
    "FRAME": lambda machine, _: None,
    "MARK": _Machine.mark,
    "NONE": lambda machine, _: machine.push(None),
    "NEWTRUE": lambda machine, _: machine.push(True),
    "NEWFALSE": lambda machine, _: machine.push(False),
    "EMPTY_LIST": lambda machine, _: machine.push([]),
    "EMPTY_DICT": lambda machine, _: machine.push({}),
    "EMPTY_TUPLE": lambda machine, _: machine.push(()),
    "TUPLE": lambda machine, _: machine.tuple(None),
    "TUPLE1": lambda machine, _: machine.tuple(1),
    "TUPLE2": lambda machine, _: machine.tuple(2),
    "TUPLE3": lambda machine, _: machine.tuple(3),
    "APPEND": lambda machine, _: machine.append(machine.take(1)),
    "APPENDS": lambda machine, _: machine.append(machine.items()),
    "SETITEM": lambda machine, _: machine.set_items(machine.take(2)),
    "SETITEMS": lambda machine, _: machine.set_items(machine.items()),
    "MEMOIZE": _Machine.memorize,
    "STACK_GLOBAL": lambda machine, _: machine.name(*machine.take(2)),
    "GLOBAL": lambda machine, names: machine.name(*names.split(" ", 1)),
    "INST": lambda machine, names: machine.name(*names.split(" ", 1)),
    "REDUCE": _Machine.call,
    "NEWOBJ": _Machine.call,
    "BUILD": _Machine.build,
    "PERSID": _Machine.refuse_outside,
    "BINPERSID": lambda machine, _: machine.refuse_outside(machine.stack[-1]),
}
_ACTS |= dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), _Machine.remember)
_ACTS |= dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _Machine.recall)
_ACTS |= dict.fromkeys(("EXT1", "EXT2", "EXT4"), _Machine.refuse_extension)
_TEXTS = ("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "STRING", "SHORT_BINSTRING", "BINSTRING")
_NUMBERS = ("BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "BINFLOAT", "FLOAT")
_BYTES = ("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8")
_ACTS |= dict.fromkeys((*_TEXTS, *_NUMBERS, *_BYTES), _Machine.push)

# By the byte that stands for it: what an instruction is called; how its argument is read (None: it has none), and what
# it does.
_NAMED = {one.code.encode("latin-1"): one.name for one in pickletools.opcodes}
_INSTRUCTIONS = {
    one.code.encode("latin-1"): (one.arg and one.arg.reader, _ACTS[one.name])
    for one in pickletools.opcodes
    if one.name in _ACTS
}


def _columns(frame):
    """{name: values} from what was noted of a frame, which mirrors pandas' __reduce__ methods."""
    manager = _made(frame, "DataFrame").state["_mgr"]
    blocks, (names, _) = _made(manager, "BlockManager").arguments
    (names,) = _array(_made(names, "_new_Index").arguments[1]["data"])
    columns = dict.fromkeys(_expect(name, str) for name in names)
    for block in blocks:
        values, placement, _ = _made(block, "_unpickle_block").arguments
        positions = range(*_made(placement, "slice").arguments)
        for position, column in zip(positions, _array(values), strict=True):
            columns[names[position]] = column
    if len(columns) != len(names) or None in columns.values():
        raise ValueError("its columns are incomplete or share names")
    if not all(_is_plain(cell, _DEPTH) for column in columns.values() for cell in column):
        raise ValueError("a cell holds more than texts and numbers, in lists and dictionaries")
    return columns


def _array(array):
    """A one- or two-dimensional array of objects as a list of rows; read once, for it could be counted without end."""
    _, shape, _, is_fortran, values = _made(array, "_reconstruct").state
    array.state = None
    *height, width = (_expect(length, int) for length in _expect(shape, tuple))
    if is_fortran or not 0 < width <= len(_expect(values, list)) or len(height) > 1 or len(values) % width:
        raise ValueError("an array is not a whole one of Python objects in C order")
    if height not in ([], [len(values) // width]) or (not height and len(values) != width):
        raise ValueError("an array is not a whole one of Python objects in C order")
    return [values[start : start + width] for start in range(0, len(values), width)]


def _is_small(value, depth):
    if isinstance(value, tuple):
        return depth > 0 and len(value) <= _DEPTH and all(_is_small(one, depth - 1) for one in value)
    is_dtype = isinstance(value, _Made) and value.name == "dtype"  # which nobody looks into
    return value is None or is_dtype or isinstance(value, str | bytes | int | float | _Name)


def _is_plain(value, depth):
    if isinstance(value, _PLAIN):
        return True
    inner = value.values() if isinstance(value, dict) else _expect(value, list)
    return depth > 0 and all(_is_plain(one, depth - 1) for one in inner)


def _made(thing, name):
    if not isinstance(thing, _Made) or thing.name != name:
        raise TypeError(f"a {type(thing).__name__} stands where {name} should")
    return thing


def _expect(thing, kind):
    if not isinstance(thing, kind):
        raise TypeError(f"a {type(thing).__name__} stands where a {kind.__name__} should")
    return thing


def _shown(text):
    """A pickle's own text inside a message: in one line, cut, with control characters spelled out."""
    sound = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text[:_LONGEST])
    return sound + "…" * (len(text) > _LONGEST)
