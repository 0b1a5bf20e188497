"""What a label map is: label tables, maps with their affine, frames, NIfTI, vocabularies, the catalogue."""
