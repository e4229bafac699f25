"""Methods: what is read from a model, and how an option's readings become its score. No tensors here."""
