"""Checkpoints: from a name, a folder or a model in memory to heads that engines can be made of."""
