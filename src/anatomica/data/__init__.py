"""Where label maps come from: phantoms, public data sets, and the cache that training reads."""
