"""Vectors → numbers for people: isotropy, correlation, intervals, classification."""
