"""Methods on equal footing: the same start, text, steps and selection, several seeds, one judge."""
