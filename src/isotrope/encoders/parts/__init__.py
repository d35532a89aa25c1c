"""What can follow the pooling; each part reads and writes itself."""
