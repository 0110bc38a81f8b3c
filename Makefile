# A thin front for CMake: it installs what is missing and calls the presets. `make help` lists what there is.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.PHONY: help deps build test test-torch bench install format

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
SUITE ?= sol-execbench-rope

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

deps: ## install the Debian packages that the build needs (without root: say which)
	@packages/install build

build: deps ## build into build/ (the tool: build/ropegrad)
	@cmake --preset default $(CMAKE_ARGS)
	@cmake --build --preset default --parallel $(JOBS)

test: build ## build, then run every test
	@ctest --preset default

# Without a GPU to run them, kernels for it would be compiled for nothing.
test-torch: CMAKE_ARGS ?= -DROPEGRAD_CUDA=OFF
test-torch: ## in a virtual environment of its own: pip install, then the Python tests with PyTorch
	@packages/install build torch
	@CMAKE_ARGS="$(CMAKE_ARGS)" python/tests/in_venv.sh build-venv

bench: build ## build, time SUITE (default sol-execbench-rope) into build/record.json, and write build/site/
	@build/ropegrad bench --suite $(SUITE) --json build/record.json
	@build/ropegrad report --records records --records build/record.json --out build/site
	@echo "Open $(CURDIR)/build/site/index.html"

install: build ## build, then install under PREFIX (default /usr/local); DESTDIR is honoured
	@cmake --install build --prefix $(PREFIX)

format: ## lay out every source file as .clang-format says
	@git ls-files --cached --others --exclude-standard '*.c' '*.h' '*.cpp' '*.cu' '*.cuh' '*.def' | xargs clang-format-14 -i
