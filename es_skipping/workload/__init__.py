"""What queries ask: their filters, from the query log, and the conditions that recur in them."""
