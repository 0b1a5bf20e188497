"""Control domains: template grid x affine, one file a family of the paper."""
