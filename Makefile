# `make check` is what CI runs: the same commands, in the same environment (scripts/venv).
VENV = $(shell scripts/venv dev)

.PHONY: check lint types layers test format demo man clean

check: lint types layers test

lint:
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	@if command -v shellcheck >/dev/null; then shellcheck .ci/run scripts/clients scripts/demo scripts/test scripts/venv; \
	else echo 'shellcheck is not installed: the shell scripts were not checked'; fi

types:
	$(VENV)/bin/mypy

layers:
	$(VENV)/bin/lint-imports

test:
	scripts/test

format:
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

demo:
	scripts/demo

man:
	man -l man/git-orch.1

clean:
	rm -rf .venv .coverage* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
