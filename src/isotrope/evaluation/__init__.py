"""The judge: STS, geometry, label-free measures; every table names its protocol."""
