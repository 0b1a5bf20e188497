"""`make test-sanitize` points ANATOMICA_KERNEL at a kernel built under the sanitizers; it is used instead."""

import importlib.util
import os
import sys

NAME = "anatomica._kernel"

if path := os.environ.get("ANATOMICA_KERNEL"):
    spec = importlib.util.spec_from_file_location(NAME, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[NAME] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[NAME])
