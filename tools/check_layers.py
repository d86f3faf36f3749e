#!/usr/bin/env python3
"""Checks the direction of includes: a layer knows only what stands below it.

Prints one line for each include that goes up or sideways, and for each heavy third-party header in a public
header; exits 1 if there is any. With a folder as argument it checks that tree instead of its own.
"""

import pathlib
import re
import sys

BELOW_MODELS = {"nn", "kernels", "text", "io", "tensor", "base"}
# layer -> the layers that it may include (itself besides).
ALLOWED = {
    "base": set(),
    "tensor": {"base"},
    "io": {"tensor", "base"},
    "text": {"io", "tensor", "base"},
    "kernels": {"tensor", "base"},
    "nn": {"kernels", "tensor", "base"},
    "models": BELOW_MODELS,
    "train": BELOW_MODELS | {"models"},
    "analysis": BELOW_MODELS | {"models"},
    "experiment": BELOW_MODELS | {"models", "train"},
    "report": BELOW_MODELS | {"models", "train", "analysis", "experiment"},
    "serve": BELOW_MODELS | {"models", "train", "analysis", "experiment", "report"},
    "apps": BELOW_MODELS | {"models", "train", "analysis", "experiment", "report", "serve"},
}
# Only in .cc and -inl.h: whoever includes a public header must not need, or wait for, these.
HEAVY = ("nlohmann/", "toml++/", "CLI/", "spdlog/", "hwy/", "dnnl", "oneapi/dnnl", "unicode/",
         "cairo", "pango/", "archive.h", "archive_entry.h", "linear.h", "httplib.h")
INCLUDE = re.compile(r'^\s*#\s*(?:include|define\s+HWY_TARGET_INCLUDE)\s*([<"])([^>"]+)[>"]')


def layer_of(path):
    """The layer of a path in the repository, or None where layers do not apply."""
    parts = path.split("/")
    if parts[0] == "apps":
        return "apps"
    if parts[0] == "headlight" and len(parts) > 2:
        return parts[1]
    return None


def check_file(root, path):
    name = path.relative_to(root).as_posix()
    layer = layer_of(name)
    is_public_header = (
        name.startswith("headlight/") and name.endswith(".h") and not name.endswith("-inl.h"))
    problems = []
    if layer not in ALLOWED:
        return [f"{name}:1: no layer is called '{layer}': name it in tools/check_layers.py"]
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = match.group(2)
        target_layer = layer_of(target)
        if target_layer is not None and target_layer != layer:
            if target_layer not in ALLOWED:
                problems.append(f"{name}:{number}: includes {target}: no such layer")
            elif target_layer not in ALLOWED[layer]:
                problems.append(
                    f"{name}:{number}: {layer} -> {target_layer} is no arrow that goes down "
                    f"(includes {target})")
        if is_public_header and target.startswith(HEAVY):
            problems.append(f"{name}:{number}: {target} in a public header: only in .cc and -inl.h")
    return problems


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent).resolve()
    files = sorted(
        path for folder in ("headlight", "apps") for path in (root / folder).rglob("*")
        if path.suffix in (".h", ".cc", ".cu") and path.is_file())
    if not files:
        print(f"check_layers: no sources below {root}", file=sys.stderr)
        return 2
    problems = [problem for path in files for problem in check_file(root, path)]
    for problem in problems:
        print(problem)
    print(f"check_layers: {len(files)} files, {len(problems)} problems", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
