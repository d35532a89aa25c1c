"""One record → the views a method compares."""
