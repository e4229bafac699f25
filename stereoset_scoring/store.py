"""Files: the one module that writes them, whole or not at all."""

import json
import os
import tempfile
from pathlib import Path


def write_json(path, content):
    """Write content as JSON, atomically: whoever reads the path sees the old file or the new one.

    Raises:
        OSError: if the folder cannot be written to; the old file is then as it was.
    """
    path = Path(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1, ensure_ascii=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
