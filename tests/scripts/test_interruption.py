"""However a run is asked to end, it can go on: before it has begun, again and again, while it writes, by its launcher."""
