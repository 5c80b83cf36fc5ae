"""Column groups, GSOP and GSOP-R: different columns laid out by different features (chapters 4 and 5)."""
