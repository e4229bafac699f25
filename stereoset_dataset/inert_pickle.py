"""Reading a pickled DataFrame without running anything that it names.

A pickle is a program: opening one calls whatever it names. The translations were published as DataFrames pickled by
pandas 1.x. Here the few names that occur in such a file stand for inert records, any other name is refused, and the
table is put together from the records: no pandas, no numpy, whatever their internals are today.
"""

import pickle


class Inert:
    """Stands in for a class or function of a pickle: remembers what it was given, does nothing."""

    def __init__(self, *args):
        self.args = args
        self.state = None

    def __setstate__(self, state):
        self.state = state


class FrameState(Inert):
    """pandas.core.frame.DataFrame"""


class BlockManager(Inert):
    """pandas.core.internals.managers.BlockManager: args are the blocks and the two axes."""


class Block(Inert):
    """pandas._libs.internals._unpickle_block: args are the values, their place among the columns, 2."""


class Array(Inert):
    """numpy's ndarray; its state's last item holds the values, row by row."""


class Index(Inert):
    """pandas.core.indexes.base._new_Index: args are a class and {"data": Array, …}."""


class Other(Inert):
    """A name that the table does not need: a dtype, the class of an index, the rows' numbers."""


ALLOWED = {
    ("pandas.core.frame", "DataFrame"): FrameState,
    ("pandas.core.internals.managers", "BlockManager"): BlockManager,
    ("pandas._libs.internals", "_unpickle_block"): Block,
    ("pandas.core.indexes.base", "_new_Index"): Index,
    ("pandas.core.indexes.base", "Index"): Other,
    ("pandas.core.indexes.range", "RangeIndex"): Other,
    ("pandas.core.indexes.numeric", "Int64Index"): Other,
    ("numpy.core.multiarray", "_reconstruct"): Array,
    ("numpy.core.numeric", "_frombuffer"): Other,
    ("numpy", "ndarray"): Other,
    ("numpy", "dtype"): Other,
    ("builtins", "slice"): slice,  # harmless, and has no stand-in's need
}


class InertUnpickler(pickle.Unpickler):
    """An unpickler that knows the names in ALLOWED and makes inert records of them."""

    def find_class(self, module, name):
        """The stand-in for a name.

        Raises:
            pickle.UnpicklingError: if the name is not in ALLOWED.
        """
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(
                f"The pickle names {module}.{name}, which no table needs: it is refused; fetch the file again."
            )
        return ALLOWED[module, name]

    def persistent_load(self, pid):
        """Refuse what lies outside the file."""
        raise pickle.UnpicklingError(f"The pickle refers to something outside itself ({pid!r}): it is refused.")


def read_frame(path):
    """The rows of a pickled DataFrame, as a list of dicts, in the file's order.

    Raises:
        pickle.UnpicklingError: if the file names anything but the parts of a table, or is none.
    """
    with open(path, "rb") as file:
        frame = InertUnpickler(file).load()
    try:
        return _rows(frame.state["_mgr"])
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise pickle.UnpicklingError(
            f"{path} is not a table as pandas 1.x pickled it ({error!r}): fetch the file again."
        ) from error


def _rows(manager):
    blocks, (column_index, _) = manager.args
    names = _values(column_index.args[1]["data"])
    columns = {}
    for block in blocks:
        values, place, _ = block.args
        (_, (width, height), *_) = values.state
        flat = _values(values)
        for k, column in enumerate(range(len(names))[place]):
            columns[names[column]] = flat[k * height : (k + 1) * height]
        if len(flat) != width * height:
            raise ValueError(f"a block of {width} x {height} holds {len(flat)} values")
    return [dict(zip(names, row, strict=True)) for row in zip(*(columns[n] for n in names), strict=True)]


def _values(array):
    (*_, values) = array.state
    if not isinstance(values, list):
        raise ValueError("an array holds raw bytes instead of texts")
    return values
