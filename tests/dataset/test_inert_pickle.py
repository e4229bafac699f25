"""Reading a data frame's pickle runs nothing, whatever the pickle asks for."""

import contextlib
import copyreg
import io
import os
import pickle
import struct
import subprocess
import sys
import time
import tracemalloc

import hypothesis
import hypothesis.strategies as st
import pytest

from stereoset_dataset.inert_pickle import RefusedPickle, read_data_frame
from tests.crossing import thorough

ran = []


def run(*arguments):
    """What no pickle may reach."""
    ran.append(arguments)


class Calls:
    """Pickles into a call of `function`."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def text(string):
    return b"\x8c" + bytes([len(string)]) + string.encode()  # SHORT_BINUNICODE


def name(module, attribute):
    return text(module) + text(attribute) + b"\x93"  # STACK_GLOBAL


PROTOCOL_4 = b"\x80\x04"
CALL = text("touched") + b"\x85R."  # one argument, REDUCE, STOP
HOSTILE = [
    # what, pickle, the name that the refusal must give
    ("os.system", pickle.dumps(Calls(os.system, "true")), f"{os.name}.system"),
    ("eval", pickle.dumps(Calls(eval, "1")), "builtins.eval"),
    ("eval as Python 2 wrote it", b"c__builtin__\neval\n(S'1'\ntR.", "__builtin__.eval"),
    ("INST, which names and calls at once", b"(S'true'\nios\nsystem\n.", "os.system"),
    ("Popen, in text", pickle.dumps(Calls(subprocess.Popen, "true"), protocol=0), "Popen"),
    ("a dotted name", PROTOCOL_4 + name("pandas.core.frame", "DataFrame.eval") + CALL, "DataFrame.eval"),
    ("a way out of an allowed module", PROTOCOL_4 + name("pandas.core.frame", "sys.exit") + CALL, "sys.exit"),
    (
        "a way out of a function",
        PROTOCOL_4 + name("numpy.core.multiarray", "_reconstruct.__globals__") + CALL,
        "__glob",
    ),
    ("another name of an allowed module", PROTOCOL_4 + name("builtins", "getattr") + CALL, "builtins.getattr"),
    ("an allowed name of another module", PROTOCOL_4 + name("builtins", "DataFrame") + CALL, "builtins.DataFrame"),
    ("numpy's own loader", PROTOCOL_4 + name("numpy", "load") + CALL, "numpy.load"),
    ("a persistent id", b"Ptouched\n.", "touched"),
    ("a binary persistent id", PROTOCOL_4 + text("touched") + b"Q.", "touched"),
]


@pytest.mark.parametrize(("data", "culprit"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE])
def test_names_beyond_a_data_frame_are_refused_by_name(data, culprit):
    with pytest.raises(RefusedPickle, match=culprit):
        read_data_frame(data)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_call_is_refused_and_not_made_under_every_protocol(protocol):
    data = pickle.dumps(Calls(print, "touched"), protocol)
    with pytest.raises(RefusedPickle, match=r"builtins?__\.print|builtins\.print"):
        read_data_frame(data)


@pytest.fixture
def extension():
    """A code for `run` that was used before, so that the interpreter answers it from a cache."""
    module, attribute, code = __name__, "run", 240
    copyreg.add_extension(module, attribute, code)
    copyreg._extension_cache[code] = run
    yield PROTOCOL_4 + b"\x82" + bytes([code]) + CALL
    copyreg.clear_extension_cache()
    copyreg.remove_extension(module, attribute, code)


def test_an_extension_code_is_refused_even_when_the_interpreter_has_it_at_hand(extension):
    with pytest.raises(RefusedPickle, match="run"):
        read_data_frame(extension)
    assert ran == []


FRAME = name("pandas.core.frame", "DataFrame")
NOT_FRAMES = [
    ("nothing", b""),
    ("no pickle", b"id,target\n"),
    ("a plain value", pickle.dumps({"rows": []})),
    ("a stand-in itself", PROTOCOL_4 + FRAME + b"."),
    ("a frame without state", PROTOCOL_4 + FRAME + b")\x81."),
    ("a frame whose state is a number", PROTOCOL_4 + FRAME + b")\x81K\x01b."),
    ("a state set on the stand-in's class", PROTOCOL_4 + FRAME + b"N}" + text("state") + b"K\x01s\x86b."),
    ("keyword arguments", PROTOCOL_4 + FRAME + b")}" + text("data") + b"K\x01s\x92."),
    ("hostile arguments", PROTOCOL_4 + FRAME + name("builtins", "slice") + b"\x85R."),
    ("items set on a stand-in", PROTOCOL_4 + FRAME + b")\x81" + text("a") + text("b") + b"s."),
    ("items appended to a stand-in", PROTOCOL_4 + FRAME + b")\x81" + text("a") + b"a."),
    ("a length beyond the data", b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b"."),
]


@pytest.mark.parametrize("data", [case[1] for case in NOT_FRAMES], ids=[case[0] for case in NOT_FRAMES])
def test_what_is_no_data_frame_is_refused(data):
    with pytest.raises(RefusedPickle, match="no data frame"):
        read_data_frame(data)


class Reduced:
    """Pickles as an object that pandas or numpy would have made."""

    def __init__(self, module, attribute, arguments, state=None):
        self.parts = module, attribute, arguments, state


class FramePickler(pickle._Pickler):
    """Writes names of modules that need not be installed."""

    dispatch = dict(pickle._Pickler.dispatch)  # noqa: RUF012

    def save_reduced(self, thing):
        module, attribute, arguments, state = thing.parts
        self.write(name(module, attribute))
        self.save(arguments)
        self.write(pickle.REDUCE)
        if state is not None:
            self.save(state)
            self.write(pickle.BUILD)

    dispatch[Reduced] = save_reduced


def array(values, *shape, fortran=False):
    return Reduced("numpy.core.multiarray", "_reconstruct", (None, (0,), b"b"), (1, shape, None, fortran, values))


def frame(names, *blocks):
    """The pickle of a frame. blocks: (first column, columns, rows, values column by column)."""
    blocks = tuple(
        Reduced(
            "pandas._libs.internals",
            "_unpickle_block",
            (array(values, width, rows), Reduced("builtins", "slice", (first, first + width, 1)), 2),
        )
        for first, width, rows, values in blocks
    )
    index = Reduced("pandas.core.indexes.base", "_new_Index", (None, {"data": array(names, len(names)), "name": None}))
    manager = Reduced("pandas.core.internals.managers", "BlockManager", (blocks, [index, None]))
    file = io.BytesIO()
    FramePickler(file, 4).dump(Reduced("pandas.core.frame", "DataFrame", (), {"_mgr": manager}))
    return file.getvalue()


def test_rows_come_out_whichever_block_holds_a_column():
    data = frame(["a", "b", "c"], (0, 2, 2, ["a0", "a1", "b0", "b1"]), (2, 1, 2, ["c0", "c1"]))
    assert read_data_frame(data) == [{"a": "a0", "b": "b0", "c": "c0"}, {"a": "a1", "b": "b1", "c": "c1"}]


@pytest.mark.parametrize(
    "data",
    [
        frame(["a", "b"], (0, 1, 2, ["a0", "a1"])),
        frame(["a", "a"], (0, 2, 1, ["a0", "b0"])),
        frame(["a"], (0, 1, 2, ["a0"])),
        frame(["a"], (1, 1, 1, ["a0"])),
        frame(["a", "b"], (0, 1, 1, ["a0"]), (1, 1, 2, ["b0", "b1"])),
    ],
    ids=["column missing", "column twice", "value missing", "column beyond the names", "columns of unlike length"],
)
def test_a_frame_with_holes_is_refused(data):
    with pytest.raises(RefusedPickle, match="no data frame"):
        read_data_frame(data)


@hypothesis.settings(deadline=None)
@hypothesis.given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_damaged_pickle_is_read_or_refused_and_fails_in_no_other_way(damage):
    data = bytearray(frame(["a", "b"], (0, 2, 2, ["a0", "a1", "b0", "b1"])))
    for position, byte in damage:
        data[position % len(data)] = byte
    with contextlib.suppress(RefusedPickle):
        assert all(isinstance(row, dict) for row in read_data_frame(bytes(data)))


def doubled(count, make):
    """A few bytes for 2 ** count things: each of make holds the one before twice."""
    return b"".join(make + b"q" + bytes([i]) + b"h" + bytes([i]) for i in range(count))


BOMBS = [
    ("a memory of four billion places", b"\x80\x02Nr" + b"\xff\xff\xff\xff."),
    ("a place named in decimals", b"Np99999999999\n."),
    ("a byte array of a terabyte", b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b"."),
    ("bytes of eight billion billions", b"\x80\x04\x8e" + struct.pack("<Q", 2**63 - 1) + b"."),
    ("a text of four gigabytes", b"\x80\x02X\xff\xff\xff\xff."),
    ("a negative length", b"\x80\x02T\xff\xff\xff\xff."),
    ("a frame of a terabyte", PROTOCOL_4 + b"\x95" + struct.pack("<Q", 2**40) + b"N."),
    ("a number of two gigabytes", b"\x80\x02\x8b" + struct.pack("<i", 2**31 - 1) + b"\x01."),
    ("a number of ten thousand digits", b"L" + b"9" * 10_000 + b"L\n."),
    ("sixty nested pairs as a key", b"\x80\x02}" + b")" + doubled(60, b"\x86") + b"\x86Ns."),
    ("sixty nested pairs in a set", b"\x80\x04\x8f(" + b")" + doubled(60, b"\x86") + b"\x86\x90."),
    ("a tuple nested without end, as a key", b"\x80\x02})" + b"\x85" * 100_000 + b"Ns."),
    ("a tuple nested without end, as an outside object", b"\x80\x02)" + b"\x85" * 100_000 + b"Q."),
    ("lists nested without end", b"\x80\x02" + b"]" * 50_000 + b"a" * 49_999 + b"."),
    ("marks without end", b"\x80\x02" + b"(" * 100_000 + b"."),
    ("a stack that is empty", b"\x80\x02" + b"0" * 1000),
    ("a list that holds itself", b"\x80\x02]q\x00h\x00a."),
    ("a long text for a name", PROTOCOL_4 + b"X" + struct.pack("<I", 10**6) + b"m" * 10**6 + text("x") + b"\x93."),
]


@pytest.mark.parametrize("data", [case[1] for case in BOMBS], ids=[case[0] for case in BOMBS])
def test_a_few_bytes_cannot_make_much_of_a_machine(data):
    start = time.process_time()
    with pytest.raises(RefusedPickle):
        read_data_frame(data)
    assert time.process_time() - start < 2
    with peak_memory() as peak, pytest.raises(RefusedPickle) as refused:  # which takes some times longer
        read_data_frame(data)
    assert peak() < 30e6 + 100 * len(data)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


@contextlib.contextmanager
def peak_memory():
    """A function that says how many bytes were in use at most."""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_name_cannot_command_the_terminal():
    with pytest.raises(RefusedPickle) as refused:
        read_data_frame(PROTOCOL_4 + name("os\x1b[2J\r", "system\u202e") + CALL)
    assert str(refused.value).isprintable()
    with pytest.raises(RefusedPickle) as refused:
        read_data_frame(b"P\x1b[2J\n.")
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "data",
    [
        frame(["a"], (0, 1, 1, [[[[[["deep"]]]]]])),
        frame(["a"], (0, 1, 1, [("a tuple",)])),
        frame(["a"], (0, 1, 1, [Reduced("numpy", "dtype", ("O8",))])),
        frame([("a", "b")], (0, 1, 1, ["a0"])),
        frame([7], (0, 1, 1, ["a0"])),
        frame(["a"], (0, 1, 0, [])),
        frame(["a"], (0, True, 1, ["a0"])),
    ],
    ids=[
        "deep lists",
        "a tuple",
        "what a call made",
        "a name of two",
        "a number as name",
        "no rows",
        "a truth for a length",
    ],
)
def test_cells_and_names_are_plain(data):
    with contextlib.suppress(RefusedPickle):
        assert read_data_frame(data) == [{"a": "a0"}]


instructions = st.sampled_from([bytes([code]) for code in range(256)])
arguments = st.one_of(
    st.binary(max_size=9),
    st.sampled_from([struct.pack("<I", 2**32 - 1), struct.pack("<Q", 2**40), b"\x00", b"9" * 30 + b"\n", b"a b\n"]),
)
programs = st.lists(st.tuples(instructions, arguments), max_size=40).map(lambda steps: b"".join(map(b"".join, steps)))


@hypothesis.settings(deadline=None, max_examples=300)
@hypothesis.given(programs, st.integers(0, 10_000))
def test_any_program_ends_soon_and_small(program, position):
    sound = frame(["a", "b"], (0, 2, 2, ["a0", "a1", "b0", "b1"]))
    cut = position % len(sound)
    for data in (program, PROTOCOL_4 + program + b".", sound[:cut] + program + sound[cut:]):
        start = time.process_time()
        with peak_memory() as peak, contextlib.suppress(RefusedPickle):
            read_data_frame(data)
        assert peak() < 3e6
        assert time.process_time() - start < 1


FRAMES = [
    # which of the files, their counts of rows
    ("*_de.pkl", [2103, 2123]),
    thorough("*.pkl", [2103, 2106, 2106, 2106, 2123, 2123, 2123, 2123]),
]


@pytest.mark.parametrize(("pattern", "counts"), FRAMES)
def test_real_frames_are_read_without_pandas_or_numpy(upstream, repository, pattern, counts):
    code = (
        "import sys, pathlib; sys.path.insert(0, 'stereoset_dataset'); import inert_pickle\n"
        "files = pathlib.Path(sys.argv[1]).rglob(sys.argv[2])\n"
        "counts = [len(inert_pickle.read_data_frame(path.read_bytes())) for path in files]\n"
        "print(sorted(counts), {'pandas', 'numpy'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code, str(upstream), pattern]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{counts} set()"
