"""The processes of a run, and being asked to end."""
