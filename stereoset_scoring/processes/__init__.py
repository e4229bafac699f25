"""The processes of a run, which notice each other's end; being asked to end."""
