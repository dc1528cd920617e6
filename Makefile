# SPDX-License-Identifier: Apache-2.0
# Every target that needs Python packages brings .venv up to date first; that ends at once where nothing is to be done.

PYTHON ?= python3
VENV_PYTHON := .venv/bin/python

# More threads than one each would make the two test processes fight for the cores.
TEST_PROCESSES ?= 2

.PHONY: help demo test lint bench sim mutants synth bitstream clean setup-run setup-test setup-lint setup-sim setup-synth \
	setup-bitstream

help:
	@echo "make demo       transcribe the example recordings on the emulated device, and one on the RTL"
	@echo "make test       run the tests"
	@echo "make lint       check style, types and the tree"
	@echo "make bench      measure speed and accuracy"
	@echo "make sim        list the benches of the RTL; BENCH=name runs one (CONFIG=, TEST=, WAVES=1)"
	@echo "make mutants    see that the tests notice mistakes put into the RTL (MUTANT=name for one)"
	@echo "make synth      synthesise the RTL for ECP5 within its limits (TOP=, CONFIG=, ROUTE=1 [SEED=\"1 2 3\"] for the clock rate);"
	@echo "                CONFIG=kv260, u50 or u55c: what it takes of an UltraScale+ device, part by part"
	@echo "make bitstream  build a board's image: BOARD=ulx3s-85f or ecpix5-85f; CHECK=1 builds it anew and compares,"
	@echo "                STALE=1 tells what has changed since, SEED=N tries another placement; BOARD=u50, u55c or kv260 by Vivado"
	@echo "make clean      remove what was built, but not .venv"

setup-run setup-test setup-lint setup-sim setup-synth setup-bitstream: setup-%:
	@command -v $(PYTHON) >/dev/null || { echo "setup: Python: found no $(PYTHON), wanted 3.11 or newer;" \
		"get it with: apt-get install python3 python3-venv python3-dev" >&2; exit 2; }
	@$(PYTHON) scripts/setup.py $*

demo: setup-sim
	@$(VENV_PYTHON) scripts/demo.py

test: setup-test
	@OMP_NUM_THREADS=1 $(VENV_PYTHON) -m pytest -q -n $(TEST_PROCESSES) --dist worksteal tests

lint: setup-lint
	@$(VENV_PYTHON) -m ruff check
	@$(VENV_PYTHON) -m ruff format --check
	@$(VENV_PYTHON) -m mypy host/ scripts/ sim/reference/ sim/mutants/ sim/decoding/ sim/links/
	@$(VENV_PYTHON) scripts/gen_registers.py --check --markdown docs/registers.md
	@$(VENV_PYTHON) scripts/check_tree.py
	@$(VENV_PYTHON) -m scripts.rtl.lint
	@$(VENV_PYTHON) -m scripts.cards.check

bench: setup-test
	@$(VENV_PYTHON) scripts/bench.py
	@OMP_NUM_THREADS=1 $(VENV_PYTHON) scripts/bench_speed.py
	@OMP_NUM_THREADS=1 $(VENV_PYTHON) -m scripts.bench_traces
	@OMP_NUM_THREADS=1 $(VENV_PYTHON) scripts/bench_checkpoints.py
	@$(VENV_PYTHON) -m gharial bench rtl --config ecp5-85f
	@OMP_NUM_THREADS=1 $(VENV_PYTHON) -m scripts.bench_ngram
	@OMP_NUM_THREADS=1 $(VENV_PYTHON) -m scripts.bench_decoding
	@OMP_NUM_THREADS=1 $(VENV_PYTHON) -m gharial bench decode
	@OMP_NUM_THREADS=1 $(VENV_PYTHON) -m scripts.bench_hours
	@OMP_NUM_THREADS=1 $(VENV_PYTHON) -m scripts.bench_published
	@OMP_NUM_THREADS=1 $(VENV_PYTHON) -m scripts.bench_batches
	@$(VENV_PYTHON) -m scripts.bench_fidelity
	@GHARIAL_LONG=1 OMP_NUM_THREADS=1 $(VENV_PYTHON) -m pytest -q tests/test_board_uart.py tests/test_board_ethernet.py tests/test_netlist_whole.py \
		tests/test_decoding_search.py
	@OMP_NUM_THREADS=1 $(VENV_PYTHON) -m scripts.bench_netlist
	@OMP_NUM_THREADS=1 $(VENV_PYTHON) -m scripts.bench_links
	@OMP_NUM_THREADS=1 $(VENV_PYTHON) -m scripts.bench_soak
	@OMP_NUM_THREADS=1 $(VENV_PYTHON) -m gharial bench server --streams 100 --set host/gharial/data/recordings --limit-ms 60

sim: setup-sim
	@$(VENV_PYTHON) -m sim.run $(if $(filter 1,$(WAVES)),--waves) $(if $(CONFIG),--config $(CONFIG)) \
		$(if $(TEST),--test $(TEST)) $(BENCH)

mutants: setup-test
	@$(VENV_PYTHON) -m sim.mutants --jobs $(TEST_PROCESSES) $(MUTANT)

synth: setup-synth
	@$(VENV_PYTHON) -m scripts.rtl.synth $(if $(CONFIG),--config $(CONFIG)) $(if $(filter 1,$(ROUTE)),--route) \
		$(if $(SEED),--seed $(SEED)) -- $(TOP)

bitstream: setup-bitstream
	@$(VENV_PYTHON) -m scripts.board.build $(if $(filter 1,$(CHECK)),--check) $(if $(filter 1,$(STALE)),--stale) \
		$(if $(SEED),--seed $(SEED)) $(if $(BOARD),$(BOARD),none)

clean:
	rm -rf build dist host/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f host/gharial/isa/_registers.py host/gharial/isa/_configs.yaml host/gharial/isa/_boards.yaml host/gharial/devices/emulator/_engine*.so \
		host/gharial/features/_transform*.so host/gharial/decoding/_search*.so
	find host scripts sim tests -name __pycache__ -type d -prune -exec rm -rf {} +
