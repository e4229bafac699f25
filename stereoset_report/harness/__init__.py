"""lm-eval (EleutherAI's lm-evaluation-harness): StereoSet's tasks for it, and the scores in what it logs."""
