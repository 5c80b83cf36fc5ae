"""Protected metadata: indexes whose stored form says little or nothing to who lacks their key."""
