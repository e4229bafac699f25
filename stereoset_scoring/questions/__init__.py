"""What is asked: examples, what stands at BLANK, and a tokenizer's answers."""
