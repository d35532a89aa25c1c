"""The loop on accelerate: optimiser, gathering, checkpoints, selection, alarms."""
