"""Control domains: template grid x affine, one file per family of the paper."""
