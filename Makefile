# make demo and make test each set up everything they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-slow test-sanitize bench lint format wheel clean

$(STAMP): pyproject.toml constraints.txt CMakeLists.txt tools/lower_star_table.py $(wildcard cpp/*)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt torch
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[test]'
	touch $@

demo: $(STAMP)
	$(BIN)/anatomica demo --out demo

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright

# One thread per worker: two workers of two threads each on two cores wait for one another.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m slow

# The kernel under AddressSanitizer and UBSan, used by its own tests in place of the installed one. Python itself is
# not instrumented: the runtime is preloaded, and leaks are left to the memory test.
SANITIZED := build/sanitize
test-sanitize: $(STAMP)
	$(BIN)/python -m pip install -q -c constraints.txt cmake nanobind
	$(BIN)/cmake -S . -B $(SANITIZED) -DCMAKE_BUILD_TYPE=Debug -DANATOMICA_SANITIZE=ON \
		-DPython_EXECUTABLE=$(abspath $(BIN)/python) > /dev/null
	$(BIN)/cmake --build $(SANITIZED)
	ANATOMICA_KERNEL="$$(ls $(abspath $(SANITIZED))/_kernel*.so)" ASAN_OPTIONS=detect_leaks=0 \
		LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" \
		$(BIN)/python -m pytest tests/measurement/homology --deselect tests/measurement/homology/test_table.py

bench: $(STAMP)
	$(BIN)/anatomica bench measure --out results
	$(BIN)/anatomica bench homology --out results
	$(BIN)/anatomica bench generation --out results
	$(BIN)/anatomica bench guidance --out results

# A wheel in dist/ for this machine: the kernel is compiled. It runs anywhere `pip install` can fetch torch.
wheel: $(STAMP)
	$(BIN)/python -m pip wheel -q --no-deps --wheel-dir dist .

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf build dist out demo $(STAMP)
