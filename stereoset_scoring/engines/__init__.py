"""HOW it is computed: rows in, log-probabilities out; all speed lives here, and it changes no number."""
