"""Index types: one module each. `es_skipping.indexes.registry` finds them by name, `base` says what one is."""
