"""Rows and recipes, packs, batches: from what methods ask to what engines are given."""
