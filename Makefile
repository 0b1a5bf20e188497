# make demo and make test each set up everything they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo studio page browser test test-slow fuzz test-sanitize bench lint format wheel clean

$(STAMP): pyproject.toml constraints.txt CMakeLists.txt tools/lower_star_table.py $(wildcard cpp/*)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt torch
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[test]'
	touch $@

demo: $(STAMP)
	$(BIN)/anatomica demo --out demo

studio: $(STAMP)
	$(BIN)/anatomica studio

# The studio's page, from web/ into the package; only who changes it needs Node.
page:
	cd web && npm ci && npm run check && npm run build

# What the page's tests drive; on other systems than Debian install Chromium by hand.
browser:
	@command -v chromium > /dev/null || { test "$$(id -u)" = 0 && apt-get update -q && apt-get install -y -q --no-install-recommends chromium; } \
		|| { echo "The studio's tests need Chromium: sudo apt-get install chromium"; exit 1; }

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright

# One thread per worker: two workers of two threads each on two cores wait for one another.
test: lint browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: $(STAMP)
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[slow]'
	$(BIN)/python -m pytest -m slow

# More than 10,000 damaged files, specs, models, recipes, caches and command lines; `make test` has a short run of it.
fuzz: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python tests/fuzz/run.py

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
