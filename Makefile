# Sets up everything in .venv and build/ from a fresh clone. Needs python3 (3.11 or newer) with venv,
# a C++ compiler and make.
#
# fairlap is installed in editable mode: Python runs from python/, so an edit there takes effect at once;
# the native module is compiled in build/release and copied into python/fairlap/engine.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := $(shell find cpp cmake -type f 2>/dev/null) CMakeLists.txt CMakePresets.json
# One more than the cores that CI has, since tests wait for processes for a third of their time.
JOBS ?= 3
PIP := $(BIN)/pip install --quiet --constraint constraints.txt
# Of large downloads: pip shows how far they are where a terminal is there.
LARGE_PIP := $(BIN)/pip install $(shell test -t 2 || echo --quiet) --constraint constraints.txt
EDITABLE := --no-build-isolation -Cwheel.cmake=false -Ceditable.mode=inplace -Cwheel.packages=python/fairlap --editable
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of processes; without kept bytecode each of them would compile fairlap again.
export PYTHONDONTWRITEBYTECODE :=
# Files in order of their folders: the longest, tests of real frameworks, come first and no core waits for them at the
# end. Roofs are measured before, into the user's cache, or every race with a cache of its own would spin for them.
PYTEST := $(BIN)/fairlap roofs >/dev/null && $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder

.PHONY: help demo test test-slow test-thorough test-importer test-models test-headers fuzz fuzz-importer importer-table bench-importer bench-exported conversion-margins training-distances test-cpp test-python test-environments test-sanitized lint format \
  stubs docs docs-images messages messages-rendered clean bench-engine bench-roofs bench-telemetry bench-feed bench-fed-training bench-adapters bench-training bench-ranks bench-turns bench-works bench-answers bench-load bench-report bench-store bench-block \
  telemetry-minute models-table trust trust-real trust-agreement trust-peers trust-honest trust-hostile trust-identical trust-bounds trust-queues trust-ledger trust-bisect trust-store trust-answers trust-mutants gpu-proof gpu-proof-kit trust-planted-operator trust-history trust-shared trust-wild trust-transformers trust-science

help:  ## List the targets.
	@awk -F ':.*## ' '/^## /{printf "\n%s\n", substr($$0, 4)} /^[a-z-]+:.*## /{printf "  %-25s%s\n", $$1, $$2}' Makefile

## Use and develop
demo: build/release/.module $(VENV)/.frameworks  ## Install fairlap, race four frameworks on a convolutional network, write a report.
	$(BIN)/fairlap floor
	$(BIN)/fairlap compare convnet --on torch,tensorflow:graph,jax,onnxruntime --output build/demo.html
	@echo "The report is build/demo.html; open it in a browser. The program is $(BIN)/fairlap."

test: test-cpp test-python  ## Run the tests that need no GPU, but for the slow and the thorough ones.

test-cpp: build/release/.tests  ## Run the C++ tests, two at a time.
	$(BIN)/ctest --test-dir build/release --output-on-failure -j 2

test-python: $(VENV)/.dev build/release/.tests  ## Run the Python tests, or those of PATHS, in JOBS processes (3).
	$(PYTEST) -m "not slow and not thorough" $(PATHS)

test-slow: $(VENV)/.dev build/release/.tests  ## Run the tests that take seconds each.
	$(PYTEST) -m "slow and not thorough" $(PATHS)

test-thorough: $(VENV)/.dev build/release/.tests  ## Run the tests of real frameworks and simulations that take long.
	$(PYTEST) -m thorough $(PATHS)

test-environments: $(VENV)/.dev build/release/.tests  ## Test frameworks that need separate environments (downloads over a gigabyte once).
	FAIRLAP_TEST_ENVIRONMENTS=1 $(BIN)/python -m pytest -m heavy_environments

test-models: $(VENV)/.frameworks $(VENV)/.dev build/release/.module  ## Run all tests of models, the slow ones too (half an hour).
	FAIRLAP_TEST_IMPORTER=1 $(BIN)/python -m pytest -m "not thorough" tests/unit/models tests/integration/test_graphs_of_models.py

test-importer: $(VENV)/.frameworks $(VENV)/.dev build/release/.module  ## Run the node tests of onnx through the importer in all four libraries.
	FAIRLAP_TEST_IMPORTER=1 $(BIN)/python -m pytest tests/unit/models/onnx_import

# The oldest and the newest release of CUDA that the engine is compared with, besides those of the group `abi`.
HEADERS := build/nvidia-headers
OF_12_4 := $(foreach part,cuda_runtime cuda_cupti nvml_dev,$(HEADERS)/12.4/nvidia/$(part)/include)
comma := ,
empty :=
test-headers: $(VENV)/.dev $(HEADERS)/.installed  ## Compare what we declare of NVIDIA's libraries with the headers of CUDA 12.4 and 13.5.
	FAIRLAP_NVIDIA_HEADERS=$(subst $(empty) ,$(comma),$(OF_12_4)):$(HEADERS)/13.5/nvidia/cu13/include \
	  $(BIN)/python -m pytest tests/abi/test_conformance.py

FILES ?= 100000
fuzz-importer: $(VENV)/.frameworks $(VENV)/.dev build/release/.module  ## Load 100,000 damaged ONNX files (FILES=...).
	FAIRLAP_FUZZ_FILES=$(FILES) $(BIN)/python -m pytest tests/unit/models/onnx_import/test_damaged_files.py

SECONDS ?= 600
fuzz: $(VENV)/.dev build/release/.tests  ## Give damaged files to everything that reads foreign bytes (SECONDS=600).
	FAIRLAP_FUZZ_SECONDS=$(SECONDS) $(BIN)/python -m pytest -q -s tests/fuzz

test-sanitized: $(VENV)/.dev  ## Run the C++ tests and the tests of native code under three sanitizers.
	.ci/sanitized address
	.ci/sanitized thread

lint: $(VENV)/.dev build/release/.tests  ## Run every linter that CI runs.
	.ci/lint

format: $(VENV)/.dev  ## Format the Python and C++ sources.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	git ls-files -co --exclude-standard '*.cpp' '*.hpp' '*.h' | xargs $(BIN)/clang-format -i

stubs: $(VENV)/.dev build/release/.module  ## Regenerate the stub of the native module.
	$(BIN)/python .ci/stubs.py

docs: $(VENV)/.docs build/release/.module  ## Build the documentation site in build/site.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

docs-images: $(VENV)/.dev build/release/.module  ## Draw the documentation's picture of a report from a real race (needs Chromium).
	$(BIN)/fairlap compare convnet --on torch,tensorflow:graph,jax,onnxruntime --output build/race.json
	$(BIN)/fairlap report build/race.json --output build/race.html
	$(BIN)/python tests/support/chromium.py build/race.html docs/images/report.png 1100 1470

messages: $(VENV)/.dev  ## List every error and warning in the source, to be read in one go.
	$(BIN)/python tests/support/messages.py

messages-rendered: $(VENV)/.dev  ## Provoke a message of every code, and print each as users read it.
	PYTHONPATH=tests/support $(BIN)/python tests/support/rendered_messages.py

clean:  ## Remove everything that make has installed or built.
	rm -rf $(VENV) build dist python/fairlap/engine/*.so

## Measure fairlap
bench-engine: $(VENV)/.bench build/release/.module  ## Compare cost and bias per sample with other timers.
	$(BIN)/python tests/bench/engine

bench-roofs: $(VENV)/.dev build/release/.module  ## Compare the measured roofs with loops in assembly, OpenBLAS and a loop like STREAM's.
	$(BIN)/python tests/bench/roofs.py

bench-telemetry: $(VENV)/.dev build/release/.tests build/bench-peers/.installed  ## Compare the cost of sampling with Zeus and CodeCarbon.
	$(BIN)/python tests/bench/telemetry/cost_of_watching.py --peers build/bench-peers/bin/python

bench-feed: $(VENV)/.frameworks build/release/.module  ## Compare the feeder with memcpy, PyTorch's DataLoader and each framework's input path.
	$(BIN)/python tests/bench/feed/table.py

bench-fed-training: $(VENV)/.frameworks build/release/.module  ## Measure what each input pipeline adds to a step of training.
	PYTHONPATH=tests/support $(BIN)/python tests/bench/feed/fed_training.py

bench-adapters: $(VENV)/.frameworks build/release/.module  ## Measure what each adapter adds to a hand-written loop.
	PYTHONPATH=tests/support $(BIN)/python tests/bench/adapter_overhead.py

bench-training: $(VENV)/.frameworks build/release/.module  ## Measure what each adapter adds to a hand-written training loop.
	PYTHONPATH=tests/support $(BIN)/python tests/bench/training_steps.py

bench-ranks: $(VENV)/.frameworks build/release/.module  ## Measure what fairlap adds to a step that two ranks of PyTorch share.
	PYTHONPATH=tests/support $(BIN)/python tests/bench/ranks.py

bench-turns: $(VENV)/.frameworks build/release/.module  ## Measure how much noise goes when contestants take turns (BURSTS=1: beside a neighbour; AGREEMENT=1: whether figures agree).
	$(BIN)/python tests/bench/turns.py $(if $(BURSTS),--bursts) $(if $(AGREEMENT),--agreement)

bench-works: $(VENV)/.frameworks build/release/.module  ## Time a block of 100 small works by phase (ten minutes, or eight with SECONDS=0.12; ALONE=10: with what ten take in processes of their own).
	$(BIN)/python tests/bench/many_works.py $(if $(filter file,$(origin SECONDS)),,--seconds $(SECONDS)) $(if $(ALONE),--alone $(ALONE))

bench-answers: $(VENV)/.dev build/release/.module  ## Measure the share of a comparison's time that checking the answers of callables takes (a minute).
	$(BIN)/python tests/bench/answers_of_callables.py

bench-load: $(VENV)/.dev build/release/.module  ## Measure how late requests of a load are issued, and what a request costs on its way.
	$(BIN)/python tests/bench/load.py

bench-report: $(VENV)/.dev build/release/.module  ## Measure the time and size of a report of a thousand rows.
	$(BIN)/python tests/bench/report.py

bench-store: build/release/.module  ## List and show runs among a million rows and 100 million samples (needs 6 GB of disk; SHARED=1: in a PostgreSQL server).
	$(BIN)/python tests/bench/store.py --rows 1000000 --samples 100000000 $(if $(SHARED),--shared)

telemetry-minute: build/release/.tests  ## Run the sampler at 1 kHz for a minute and check that no reading is lost.
	FAIRLAP_SAMPLER_PROOF_SECONDS=60 build/release/cpp/tests/test_telemetry_sampler

models-table: $(VENV)/.frameworks build/release/.module  ## Show which model runs in which framework, and the errors of its outputs.
	$(BIN)/python tests/bench/models_table.py

importer-table: $(VENV)/.frameworks build/release/.module  ## Write the importer's operators and conformance into the documentation.
	PYTHONPATH=tests/support $(BIN)/python tests/bench/importer_table.py --on numpy,torch,jax,tensorflow

bench-importer: $(VENV)/.frameworks build/release/.module  ## Compare the speed of imported models with hand-written ones.
	PYTHONPATH=tests/support $(BIN)/python tests/bench/imported_models.py

bench-exported: $(VENV)/.frameworks build/release/.module  ## Race built-in models that PyTorch exported, and write the errors into the documentation.
	PYTHONPATH=tests/support $(BIN)/python tests/bench/exported_models.py

bench-block: $(VENV)/.frameworks build/release/.module  ## Show where the seconds of a block of six contestants go, on a small BERT of transformers (minutes; SIZE=small).
	$(BIN)/python tests/bench/time_of_a_block.py $(if $(SIZE),--size $(SIZE))

training-distances: $(VENV)/.frameworks $(VENV)/.dev build/release/.module  ## Measure how far right and wrong training ends from float64, and write it into the documentation.
	PYTHONPATH=tests/support $(BIN)/python tests/bench/training_distances.py

conversion-margins: $(VENV)/.frameworks build/release/.module  ## Measure how far right and wrong conversions are from what is allowed.
	PYTHONPATH=tests/support $(BIN)/python tests/bench/conversion_margins.py

## Prove the statistics
trust: $(VENV)/.dev build/release/.module  ## Run the simulated trust suite at full size (the figures in docs/explanation/verdict.md).
	$(BIN)/python -m tests.trust.suite --out build/trust

trust-ledger: $(VENV)/.dev build/release/.module  ## Simulate searches that judge 500 changes each (ten minutes; the figures in docs/how-to/judge-changes-in-a-loop.md).
	$(BIN)/python -m tests.trust.searches --out build/trust

trust-bisect: $(VENV)/.dev build/release/.module  ## Plant slow commits in histories of 64 and count those that `fairlap bisect` names (minutes).
	$(BIN)/python -m tests.trust.planted_commits --histories 100

RUNS ?= 400
trust-real: $(VENV)/.dev build/release/.module  ## Measure the verdict's error rates on this machine; takes hours, or RUNS=20.
	$(BIN)/python -m tests.trust.real --out build/trust --runs $(RUNS)

PROCESSES ?= 2400
trust-peers: $(VENV)/.dev $(VENV)/.bench build/release/.module  ## Compare the verdicts of other tools on the same processes.
	$(BIN)/python -m tests.trust.peers --out build/trust --processes $(PROCESSES)

AGREEMENT_PAIRS ?= 10
trust-agreement: $(VENV)/.frameworks $(VENV)/.dev build/release/.module  ## Compare figures with loops written by hand, in every scenario (hours; ONLY=latency,train ON=torch THREADS=2).
	$(BIN)/python -m tests.trust.agreement --out build/trust --pairs $(AGREEMENT_PAIRS) --only "$(ONLY)" --on "$(ON)" $(if $(THREADS),--threads $(THREADS))

trust-shared: $(VENV)/.frameworks $(VENV)/.dev build/release/.module  ## Compare ratios of 20 works that share processes with those of works in their own (half an hour; ON=torch,onnxruntime).
	$(BIN)/python -m tests.trust.shared_processes --out build/trust $(if $(ON),--on $(ON))

SCIENCE := solvers orders_of_solvers tensorflow_probability derivatives_in_frameworks science_in_frameworks environments_and_agents mistakes_in_frameworks
SEEDS ?= 10
trust-science: $(VENV)/.dev build/release/.tests  ## Prove solvers, derivatives, environments and reported mistakes in all libraries, and compare agents with loops by hand (hours; SEEDS=10).
	$(PYTEST) $(SCIENCE:%=tests/integration/test_%.py) tests/unit/stability
	$(BIN)/python -m tests.trust.agents_by_hand --algorithm ppo --seeds $(SEEDS)
	$(BIN)/python -m tests.trust.agents_by_hand --algorithm dqn --seeds $(SEEDS)

trust-wild: $(VENV)/.frameworks $(VENV)/.dev build/release/.module  ## Race model files that public packages ship, and write which race where into build/wild-models.md (an hour and a half).
	$(BIN)/python tests/trust/wild_models.py --out build/wild-models.md

trust-transformers: $(VENV)/.frameworks $(VENV)/.dev build/release/.module  ## Race a small model of 24 families of transformers in six contestants, and write which race where into build/transformers.md (40 minutes).
	$(BIN)/python -m tests.trust.transformers_families --out build/transformers.md

RACES ?= 200
NEIGHBOURS ?= 0
trust-honest: $(VENV)/.frameworks build/release/.module  ## Race honest contestants over all models and count those that are accused (half an hour; NEIGHBOURS=2: beside busy programs).
	$(BIN)/python -m tests.trust.honest --races $(RACES) --neighbours $(NEIGHBOURS)

trust-hostile: $(VENV)/.frameworks build/release/.module  ## Race callables that cheat, and honest ones, in the sandbox of --untrusted; print who is ranked (a minute).
	$(BIN)/python -m tests.trust.hostile

trust-identical: $(VENV)/.frameworks $(VENV)/.dev build/release/.module  ## Count how often identical contestants are called different (SCENARIO=latency RACES=2; without them: the table so far).
	$(BIN)/python -m tests.trust.identical $(if $(SCENARIO),"$(SCENARIO)" --races $(if $(filter file,$(origin RACES)),1,$(RACES)))

BOUND_RUNS ?= 20
trust-bounds: $(VENV)/.frameworks build/release/.module  ## Count how often rows say rightly what bounds three models (half an hour; BOUND_RUNS=20, NEIGHBOURS=2).
	$(BIN)/python -m tests.trust.bounds --runs $(BOUND_RUNS) --neighbours $(NEIGHBOURS)

trust-queues: $(VENV)/.dev build/release/.module  ## Compare the latencies of a load with queueing theory (seven minutes).
	$(BIN)/python -m tests.trust.queues

PAIRS ?= 10
HISTORIES ?= 40
trust-history: $(VENV)/.dev build/release/.module build/otava/.installed  ## Compare rules for changes over time on recorded noise (ten minutes; HISTORIES=40).
	PYTHONPATH=build/otava $(BIN)/python -m tests.trust.history --histories $(HISTORIES)

trust-planted-operator: $(VENV)/.frameworks $(VENV)/.dev build/release/.module  ## Plant a slow operator in one of two releases and count how often `fairlap diff` names it first (PAIRS=10).
	$(BIN)/python -m tests.trust.planted_operator --pairs $(PAIRS)

MACHINES ?= 100
trust-store: $(VENV)/.dev build/release/.module  ## Send 10,000 runs of MACHINES machines to a shared store whose server is killed (minutes).
	$(BIN)/python -m tests.trust.shared_store --threads $$(($(MACHINES) / 10))

trust-answers: $(VENV)/.frameworks $(VENV)/.dev build/release/.module  ## Count right callables that are accused and wrong ones that pass.
	$(BIN)/python -m tests.trust.callable_answers --cases 3000

trust-mutants: build/mutmut/.installed  ## Plant faults in the verdict and count those that its tests catch (hours; MUTANTS='fairlap.verdict.judge*').
	rm -rf build/mutmut/copy && mkdir -p build/mutmut/copy/fairlap build/mutmut/copy/tests
	cp -r python/fairlap/*.py python/fairlap/verdict build/mutmut/copy/fairlap/
	cp -r tests/unit/verdict build/mutmut/copy/tests/
	cp tests/trust/mutmut.cfg build/mutmut/copy/setup.cfg
	cd build/mutmut/copy && ../bin/mutmut run $(if $(MUTANTS),'$(MUTANTS)') && ../bin/mutmut results

## On a machine with an NVIDIA GPU
# Uses the Python at hand, because that one has the machine's frameworks. Installs nothing.
gpu-proof:  ## Measure what only a real GPU can show (docs/gpu-proof). Options: CALL=1 PART=truth,race RESUME=1 WITHOUT=jax,cupy
	@$(PYTHON) -m tests.gpu.proof $(if $(CALL),--call $(CALL)) $(if $(PART)$(PARTS),--parts $(PART)$(PARTS)) $(if $(RESUME),--resume) \
	  $(if $(WITHOUT),--without $(WITHOUT)) $(if $(filter file,$(origin SECONDS)),,--seconds $(SECONDS)) $(if $(TOTAL),--total $(TOTAL)) \
	  $(if $(KIT),--kit $(KIT)) $(if $(WORK),--work $(WORK)) $(if $(TO),--to $(TO))

KIT_PYTHON ?= 3.12
gpu-proof-kit:  ## Fetch what the proof needs on a machine without network into build/gpu-proof-kit (KIT_PYTHON=3.12 HAS=numpy,scipy).
	@$(PYTHON) -m tests.gpu.proof.kit --python $(KIT_PYTHON) $(if $(HAS),--has $(HAS)) $(if $(KIT),--to $(KIT)) $(FRAMEWORKS)

$(VENV)/.editable: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) 'pip>=25.1'
	$(PIP) --group build
	$(PIP) $(EDITABLE) .
	@# Only the path: the import hook that comes with it would take precedence over PYTHONPATH.
	cd $(VENV)/lib/python*/site-packages && rm -f _editable_skbc_fairlap.py _editable_skbc_fairlap.start && \
	  echo '$(abspath python)' > _editable_skbc_fairlap.pth
	touch $@

# After the frameworks, because two pips must not install into one environment at the same time.
$(VENV)/.dev: $(VENV)/.frameworks
	@echo "Installing what the tests need, such as Ray, Transformers and linters; this takes minutes."
	$(LARGE_PIP) --group dev
	touch $@

$(VENV)/.docs: $(VENV)/.editable
	$(PIP) --group docs
	touch $@

$(VENV)/.bench: $(VENV)/.editable
	$(PIP) --group bench
	touch $@

$(VENV)/.frameworks: $(VENV)/.editable
	@echo "Installing PyTorch, TensorFlow, JAX, ONNX Runtime, OpenVINO and others: 4 GB on disk, more where pip"
	@echo "picks PyTorch with CUDA; this takes minutes."
	$(LARGE_PIP) 'fairlap[frameworks,report,onnx,metrics]'
	touch $@

# The library of CUPTI, which comes along with its headers, is removed.
$(HEADERS)/.installed:
	$(BIN)/pip install --quiet --no-deps --target $(HEADERS)/12.4 nvidia-cuda-runtime-cu12==12.4.127 nvidia-cuda-cupti-cu12==12.4.127 \
	  nvidia-nvml-dev-cu12==12.4.127
	$(BIN)/pip install --quiet --no-deps --target $(HEADERS)/13.5 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cupti==13.5.25 \
	  nvidia-nvml-dev==13.5.37 nvidia-cuda-crt==13.5.37
	rm -rf $(HEADERS)/*/nvidia/*/lib
	touch $@

# Other monitors, in a separate environment so that their dependencies do not reach ours.
build/bench-peers/.installed:
	$(PYTHON) -m venv build/bench-peers
	build/bench-peers/bin/pip install --quiet zeus codecarbon
	touch $@

build/otava/.installed:  # without its dependencies, which fix an older NumPy
	$(BIN)/python -m pip install --quiet --no-deps --target build/otava apache-otava==0.8.0
	touch $@

build/mutmut/.installed:
	$(PYTHON) -m venv build/mutmut
	build/mutmut/bin/pip install --quiet "mutmut>=3.8" numpy scipy ruptures msgspec pytest hypothesis statsmodels
	touch $@

build/release/.module: $(VENV)/.editable $(NATIVE)
	@echo "Compiling the native module: a minute on eight cores, some on two."
	$(BIN)/cmake --preset release -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) \
	  -DPython_EXECUTABLE=$(abspath $(BIN)/python) -Dpybind11_DIR=$$($(BIN)/python -m pybind11 --cmakedir) \
	  $$(cmake/python_headers.sh $(BIN)/python)
	MAKEFLAGS= $(BIN)/cmake --build build/release --target _native
	$(BIN)/cmake --install build/release --prefix python
	touch $@

build/release/.tests: build/release/.module
	MAKEFLAGS= $(BIN)/cmake --build build/release
	touch $@
