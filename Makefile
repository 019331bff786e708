# Everything needed is set up here, in .venv and build/, from a fresh clone. Needs python3 (3.11 or
# newer) with venv, a C++ compiler and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find cpp cmake python bench_models -type f -not -name '*.pyc' 2>/dev/null) CMakeLists.txt pyproject.toml
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo gpu-proof test test-cpp test-python test-unit test-integration test-sanitized lint format docs docs-images stubs bench-engine bench-telemetry telemetry-minute bench-feed bench-adapters bench-report bench-store models-table trust trust-real trust-peers trust-mutants clean test-environments

demo: $(VENV)/.frameworks  ## Install, show the floor, race four frameworks on a convolutional net, write a report.
	$(BIN)/fairlap floor
	$(BIN)/fairlap compare convnet --on torch,tensorflow:graph,jax,onnxruntime --blocks 8 --html build/demo.html
	@echo "The report is in build/demo.html; open it in a browser. fairlap lives in $(BIN)/fairlap."

test: test-cpp test-python  ## All tests that need no GPU.

test-cpp: build/release/.built
	$(BIN)/ctest --test-dir build/release --output-on-failure

test-python: test-unit test-integration

test-unit: $(VENV)/.dev $(VENV)/.frameworks build/release/.built
	$(BIN)/python -m pytest tests/unit

test-integration: $(VENV)/.dev $(VENV)/.frameworks build/release/.built
	$(BIN)/python -m pytest tests --ignore tests/unit

test-environments: $(VENV)/.dev  ## Frameworks that need environments of their own. Downloads over a gigabyte, once.
	FAIRLAP_TEST_ENVIRONMENTS=1 $(BIN)/python -m pytest -m heavy_environments

test-sanitized: $(VENV)/.dev  ## C++ and Python tests under address, undefined and thread sanitizers.
	.ci/sanitized address
	.ci/sanitized thread

lint: $(VENV)/.dev build/release/.built  ## Every linter that CI runs.
	.ci/lint

format: $(VENV)/.dev  ## Rewrite the sources as the formatters want them.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	git ls-files -co --exclude-standard '*.cpp' '*.hpp' '*.h' | xargs $(BIN)/clang-format -i

docs: $(VENV)/.docs  ## The documentation's site, in build/site.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

stubs: $(VENV)/.dev  ## Write the native module's stub anew.
	$(BIN)/python .ci/stubs.py

bench-engine: $(VENV)/.bench  ## One table: cost per sample and bias, beside other timers.
	$(BIN)/python tests/bench/engine

bench-telemetry: $(VENV)/.dev build/release/.built build/bench-peers/.installed  ## What watching a machine costs, beside Zeus and CodeCarbon.
	$(BIN)/python tests/bench/telemetry/cost_of_watching.py --peers build/bench-peers/bin/python

telemetry-minute: build/release/.built  ## The sampler at 1 kHz for a minute of the real clock, with no reading lost.
	FAIRLAP_SAMPLER_PROOF_SECONDS=60 build/release/cpp/tests/test_telemetry_sampler

bench-feed: $(VENV)/.frameworks  ## The feeder beside the machine's memcpy, PyTorch's DataLoader, and each framework's way in.
	$(BIN)/python tests/bench/feed/table.py

bench-adapters: $(VENV)/.frameworks  ## What an adapter adds to a step, beside the tightest loop by hand.
	$(BIN)/python tests/bench/adapter_overhead.py

bench-report: $(VENV)/.dev  ## How long a report of a thousand rows takes, and how large it is.
	$(BIN)/python tests/bench/report.py

docs-images: $(VENV)/.dev $(VENV)/.frameworks  ## The picture of a report in the documentation, from a real race. Needs Chromium.
	$(BIN)/fairlap compare convnet --on torch,tensorflow:graph,jax,onnxruntime --blocks 12 --json build/race.json
	$(BIN)/fairlap report build/race.json --html build/race.html
	$(BIN)/python tests/support/chromium.py build/race.html docs/images/report.png 1100 1470

bench-store: $(VENV)/.installed  ## Listing and showing runs out of a million rows and 100 million samples; takes 6 GB for a while.
	$(BIN)/python tests/bench/store.py --rows 1000000 --samples 100000000

models-table: $(VENV)/.frameworks  ## Which model runs in which framework, with the errors of the answers.
	$(BIN)/python tests/bench/models_table.py

trust: $(VENV)/.dev  ## The simulated trust suite at its full size: the figures in docs/explanation/verdict.md.
	$(BIN)/python -m tests.trust.suite --out build/trust

RUNS ?= 400
trust-real: $(VENV)/.dev $(VENV)/.frameworks  ## The referee on trial on this machine; hours, or RUNS=20 for a first look.
	$(BIN)/python -m tests.trust.real --out build/trust --runs $(RUNS)

PROCESSES ?= 2400
trust-peers: $(VENV)/.dev $(VENV)/.bench  ## The verdicts of other tools beside ours, on the same processes.
	$(BIN)/python -m tests.trust.peers --out build/trust --processes $(PROCESSES)

trust-mutants: $(VENV)/.dev  ## Do the tests of the verdict notice planted faults? About an hour.
	$(BIN)/python -m tests.trust.mutation.run --out build/trust

# Runs with the Python at hand, so that it sees the frameworks that this machine has. It installs nothing.
gpu-proof:  ## Everything that only a real NVIDIA GPU can show: docs/gpu-proof. PARTS=1,3-5 RESUME=1 SECONDS=400
	@$(PYTHON) -m tests.gpu.proof $(if $(PARTS),--parts $(PARTS)) $(if $(RESUME),--resume) \
	  $(if $(SECONDS),--seconds $(SECONDS)) $(if $(WORK),--work $(WORK)) $(if $(TO),--to $(TO))

clean:
	rm -rf $(VENV) build dist

# The package, as a user installs it. What its extras need comes on top, without compiling it again.
$(VENV)/.installed: $(SOURCES) | $(VENV)/bin/python
	@echo "Compiling and installing fairlap: one to two minutes."
	CMAKE_ARGS="$$(cmake/python_headers.sh $(BIN)/python)" $(BIN)/pip install --quiet .
	touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(BIN)/pip install --quiet 'fairlap[dev]'
	touch $@

# The frameworks that race, as large as they are, and what draws the report.
$(VENV)/.frameworks: $(VENV)/.installed
	mkdir -p build
	@echo "Installing PyTorch, TensorFlow, JAX, ONNX Runtime and others: over a gigabyte, some minutes."
	$(BIN)/pip install --quiet 'fairlap[frameworks,report]'
	touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/pip install --quiet 'fairlap[docs]'
	touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(BIN)/pip install --quiet 'fairlap[bench]'
	touch $@

# Other monitors, in an environment of their own: nothing of theirs shall reach ours.
build/bench-peers/.installed:
	$(PYTHON) -m venv build/bench-peers
	build/bench-peers/bin/pip install --quiet zeus codecarbon
	touch $@

build/release/.built: $(VENV)/.dev $(SOURCES)
	$(BIN)/cmake --preset release -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja)
	$(BIN)/cmake --build build/release
	touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
