"""A whole run, from data to record."""
