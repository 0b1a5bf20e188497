"""Clinical quantities by name: landmarks of a label map, where each quantity is sampled, and what it is."""
