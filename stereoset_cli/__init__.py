"""The command `stereoset`: arguments, and what is printed when."""
