# Two commands do all the set-up on Debian 12:  make run   and   make test

SHELL := /bin/bash
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
SOURCES = $(shell git ls-files -co --exclude-standard '*.cc' '*.h')

.PHONY: help run release test test-long test-arm packages packages-test format lint clean install

help:
	@echo "make run        install what is missing, build, train 1, 2, 4 and 8 heads on built-in text, show the result"
	@echo "make test       build and run every default test"
	@echo "make test-long  the tests that take minutes"
	@echo "make test-arm   the kernels' tests for 64-bit ARM, under qemu (as root: adds packages of arm64; takes minutes)"
	@echo "make install    install the library and the program below PREFIX ($(PREFIX))"
	@echo "make format     format the sources"
	@echo "make lint       layer check, format check, clang-tidy (takes minutes)"
	@echo "make clean      remove build/"

packages:
	@tools/install-packages.sh tools/packages-build.txt

packages-test:
	@tools/install-packages.sh tools/packages-build.txt tools/packages-test.txt

release: packages
	@cmake --preset release >/dev/null
	cmake --build --preset release --target headlight_program -j $(JOBS)

run: release
	@tools/quickstart.sh

test: packages-test
	@cmake --preset dev >/dev/null
	cmake --build --preset dev -j $(JOBS)
	ctest --preset dev -LE long -j $(JOBS)

test-long: packages-test
	@cmake --preset dev >/dev/null
	cmake --build --preset dev -j $(JOBS)
	ctest --preset dev -L long

test-arm:
	@JOBS=$(JOBS) tools/test-arm.sh

format: packages-test
	clang-format -i $(SOURCES)

lint: packages-test
	@tools/lint.sh

install: release
	cmake --install build/release --prefix $(PREFIX)

clean:
	rm -rf build
