"""One module a table or figure."""
