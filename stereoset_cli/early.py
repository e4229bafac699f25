"""Being asked to end while what takes seconds is still being imported."""

from stereoset_scoring.processes.interruption import begin

__all__ = ["begin"]
