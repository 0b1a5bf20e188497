"""Where to look and what is there: domains, parsing, moments, homology, placing, certificates."""
