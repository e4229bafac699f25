"""A page about runs that opens anywhere, offline: tables, figures and items in one file. Needs the extra report."""
