"""What the named quantities of a phantom truly are, by its analytic shapes and without its voxels."""
