# SPDX-License-Identifier: Apache-2.0
# Short names for the commands of CONTRIBUTING.md.
.DEFAULT_GOAL := help
.PHONY: help build test test-full lint docs package bench

help: ## print this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | expand -t 12

build: ## build the library, slowmo and slowmo-full
	swift build

test: ## build everything and run every test
	Tests/run.sh

test-full: ## run the long tests; GROUPS="soaks peers" chooses groups
	Tests/run.sh --full $(GROUPS)

lint: ## check format, language, imports and stored properties
	swift format lint --strict --recursive --parallel Package.swift Sources Tests Samples
	Tests/check-language.py --self-test
	Tests/check-imports.py
	Tests/check-state.py

docs: build ## make the documentation in .build/docs and run its examples
	Tests/check-docs.py .build/debug

package: ## build the Debian packages and the tarball into Packages
	Samples/package.sh Packages

bench: ## run the benchmarks and write a report into benchmark-report
	Benchmarks/run.sh
