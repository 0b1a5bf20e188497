"""One file per data set: a function that lists its cases, each with how to load it into our labels."""
