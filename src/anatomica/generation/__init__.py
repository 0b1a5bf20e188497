"""One pipeline from noise to a certified label map."""
