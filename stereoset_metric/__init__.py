"""ss, lms and icat from scores of options, as a module of `evaluate`."""
