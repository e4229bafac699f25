"""What is asked: names of tasks and languages, examples of any layout, what stands at BLANK, a tokenizer's answers."""
