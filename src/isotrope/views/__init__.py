"""One record → the views a method compares: edits, masks, spans, corruptions, neighbours."""
