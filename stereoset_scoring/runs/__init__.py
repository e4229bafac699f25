"""A whole run, from data to record, as a command does it and a script should not."""
