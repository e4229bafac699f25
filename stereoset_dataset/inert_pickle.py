"""Reads a data frame from a pickle without running anything that the pickle asks for.

A pickle is a program: it names functions, and opening it calls them. Here every name is answered with a class that
only remembers what it was given, and a name that a data frame has no need of is refused. Neither pandas nor numpy is
imported.
"""

import copyreg
import io
import math
import pickle

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


class RefusedPickle(pickle.UnpicklingError):
    """The pickle is not a data frame, or wants to be more than one."""


class _StandIn:
    """In place of whatever a pickle names: takes any arguments and any state, and does nothing with them."""

    __slots__ = ("arguments", "state")

    def __new__(cls, *arguments):
        self = object.__new__(cls)
        self.arguments, self.state = arguments, None
        return self

    def __setstate__(self, state):
        self.state = state


class _Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        # The pair as a whole is looked up: a dotted name such as "DataFrame.eval" is another name.
        if (module, name) not in _NAMES:
            raise RefusedPickle(
                f"The pickle names {module}.{name}, which no data frame needs: nothing was run; do not open this file "
                f"by other means."
            )
        return type(name, (_StandIn,), {"__slots__": ()})

    def persistent_load(self, pid):
        raise RefusedPickle(f"The pickle refers to the outside object {pid!r}, which no data frame does.")


def read_data_frame(data):
    """The rows of a pickled pandas DataFrame whose columns all hold Python objects.

    Args:
        data (bytes): the pickle.

    Returns:
        list of dict: one dictionary per row, by column name, in the frame's order.

    Raises:
        RefusedPickle: the pickle names anything beyond a data frame's parts, or is no such frame.
    """
    # A registered extension code that was used before is answered from a cache, without asking find_class.
    copyreg.clear_extension_cache()
    try:
        columns = _columns(_Unpickler(io.BytesIO(data)).load())
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    except RefusedPickle:
        raise
    except Exception as error:  # a hostile or broken pickle fails in as many ways as there are types
        raise RefusedPickle(f"The pickle is no data frame as pandas 1.x writes it ({error}).") from error


def _columns(frame):
    """{name: values} from the stand-ins' arguments and states, which mirror pandas' __reduce__ methods."""
    manager = _expect(frame, "DataFrame").state["_mgr"]
    blocks, (names, _) = _expect(manager, "BlockManager").arguments
    names = _array(_expect(names, "_new_Index").arguments[1]["data"])[0]
    columns = dict.fromkeys(names)
    for block in blocks:
        values, placement, _ = _expect(block, "_unpickle_block").arguments
        positions = range(*_expect(placement, "slice").arguments)
        for position, column in zip(positions, _array(values), strict=True):
            columns[names[position]] = column
    if len(columns) != len(names) or None in columns.values():
        raise ValueError("its columns are incomplete or share names")
    return columns


def _array(array):
    """A one- or two-dimensional array of objects as a list of rows."""
    _, shape, _, is_fortran, values = _expect(array, "_reconstruct").state
    if is_fortran or not isinstance(values, list) or len(values) != math.prod(shape):
        raise ValueError("an array is not a whole one of Python objects in C order")
    width = shape[-1]
    return [values[start : start + width] for start in range(0, len(values), width)]


def _expect(thing, name):
    if not isinstance(thing, _StandIn) or type(thing).__name__ != name:
        raise TypeError(f"a {type(thing).__name__} stands where {name} should")
    return thing
