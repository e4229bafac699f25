"""Engines: rows in, log-probabilities out. All speed lives here, and it changes no number."""
