"""The frame that every method fills in, and the capabilities a paper may need."""
