"""What lies on disk: files written whole or not at all, progress, StereoSet's own layout of scores."""
