"""One module per table or figure."""
