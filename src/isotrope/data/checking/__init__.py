"""One look at a text before training: what it holds, what is wrong with it, and what to do about it."""
