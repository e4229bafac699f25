"""WHAT is read from a model, and how an option's readings become its score; the table of methods and presets."""
