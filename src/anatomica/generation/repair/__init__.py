"""Label maps as decoded become label maps without misplaced pieces."""
