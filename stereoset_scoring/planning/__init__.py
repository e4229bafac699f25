"""From what methods ask to what engines are given: rows and recipes, every distinct row once, packs, batches."""
