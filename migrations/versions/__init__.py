"""One file a step; each names its .sql pair."""
