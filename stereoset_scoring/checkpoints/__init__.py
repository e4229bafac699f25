"""From a name, a folder or a model in memory to heads that can be asked; places, fingerprints, trained heads."""
