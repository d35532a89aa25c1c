"""The parts of a saved model, one file each: every part reads and writes itself, and is found by its file."""
