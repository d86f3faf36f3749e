#!/usr/bin/env python3
"""Times attention by Headlight and by other libraries, in turns, on the same inputs. README.md says how to use it.

Only the standard library is needed here; the others live in the virtual environment that --venv names, which is made
when it is not there. Nothing is written but that folder and the file that --out names.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from peers import KEEP_MEMORY, Side, processor, python_of, say, spread  # noqa: E402

SHAPES = HERE.parent.parent / "shapes"
# f32 against double, over the largest magnitude of the outputs: a fault (a mask shifted by one, a lost scale) is
# thousands of times larger, another order of sums ten times smaller. bf16 keeps 8 bits of every operand (2^-9 = 2e-3 of
# each query, key, weight and value; of a score, which is a sum of many, about as much of the largest): a fault is ten
# times larger.
TOLERANCE = {False: 2e-5, True: 2e-2}
OWN = "Headlight"
ONEDNN = ("oneDNN", "oneDNN 2")


class Library(Side):
    """One library's process. Its methods are ways of that library to compute the same."""

    def request(self, ask, **arguments):
        # Threads that still spin for work of the side before would be counted against this one.
        time.sleep(0.03)
        return self.ask(json.dumps({"ask": ask, **arguments}))


def load_average():
    return os.getloadavg()[0]


class Comparison:
    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        python = python_of(options.venv, HERE / "requirements.txt")
        self.check = Side("check", [python, HERE / "check_side.py"])
        programs = pathlib.Path(options.programs)
        self.commands = {OWN: [programs / "headlight_attention"], "PyTorch": [python, HERE / "torch_side.py"],
                         "ONNX Runtime": [python, HERE / "onnxruntime_side.py"],
                         "oneDNN": [programs / "onednn_attention"], "oneDNN 2": [programs / "onednn2_attention"]}
        for name in ONEDNN:
            if name in options.peers and not self.commands[name][0].exists():
                say(f"{name} is left out: there is no {self.commands[name][0]} (README.md says how to build it)")
                options.peers.remove(name)
        self.sides, self.threads = {}, 0
        self.use(options.threads[0])
        self.versions = {name: side.ready["ready"] for name, side in self.sides.items()}
        say("; ".join([*self.versions.values(), "reference: " + self.check.ready["ready"]]))

    def use(self, threads):
        """Starts what does not run yet. oneDNN takes its number of threads from its environment, once."""
        libraries = pathlib.Path(self.options.venv).resolve() / "lib"
        environments = {
            "PyTorch": KEEP_MEMORY,
            "oneDNN": {"LD_LIBRARY_PATH": str(libraries), "OCL_ICD_FILENAMES": str(libraries / "libintelocl.so"),
                       "DPCPP_CPU_NUM_CUS": str(threads), "ONEDNN_VERBOSE": "0"},
            "oneDNN 2": {"OMP_NUM_THREADS": str(threads)}}
        for name in ONEDNN:
            if threads != self.threads and name in self.sides:
                self.sides.pop(name).close()
        self.threads = threads
        for name in (OWN, *self.options.peers):
            if name not in self.sides:
                # SYCL's tasks may use more processors than it was told to count: so it is given no more.
                processors = threads if name == "oneDNN" else None
                self.sides[name] = Library(name, self.commands[name], environments.get(name), processors)

    def close(self):
        for side in [self.check, *self.sides.values()]:
            side.close()

    def correct(self, path, threads, tolerance):
        """Loads the inputs everywhere. Methods whose outputs are right as (side, method) -> difference, and what was left
        out as {"side: method": why}."""
        right, out = {}, {}
        self.use(threads)
        for name, side in self.sides.items():
            loaded = side.request("load", path=str(path), threads=threads)
            out.update({f"{name}: {method}": why for method, why in loaded["refused"].items()})
            for method in loaded["methods"]:
                saved = self.folder / "outputs.safetensors"
                began = time.perf_counter()
                side.request("warm", method=method, seconds=0)
                took = (time.perf_counter() - began) / 2
                if took > self.options.patience and name != OWN:
                    out[f"{name}: {method}"] = f"a pass takes {took:.0f} s"
                    continue
                side.request("save", method=method, path=str(saved))
                apart = self.check.ask(json.dumps({"ask": "check", "path": str(saved)}))["difference"]
                if apart <= tolerance:
                    right[name, method] = apart
                elif name == OWN:
                    raise SystemExit(f"{OWN} is {apart:.1e} from the reference, more than {tolerance:.0e}")
                else:
                    out[f"{name}: {method}"] = f"WRONG: {apart:.1e} from the reference, more than {tolerance:.0e}"
        return right, out

    def time(self, words, threads, path, described):
        bf16 = described["bf16"]
        right, out = self.correct(path, threads, TOLERANCE[bf16])
        seconds, peaks, loads = {key: [] for key in right}, [], []
        calls = {(name, method): self.sides[name].request("warm", method=method, seconds=self.options.seconds)["calls"]
                 for name, method in right}
        order = list(right)
        for _ in range(self.options.repeats):
            peaks.append(self.sides[OWN].request("peak", bf16=bf16)["flops_per_second"])
            loads.append(load_average())
            for name, method in order:
                done = self.sides[name].request("run", method=method, calls=calls[name, method])
                seconds[name, method].append(done["seconds"])
            order.reverse()
        own = next(key for key in right if key[0] == OWN)
        row = {"shape": words, "threads": threads, "flops": described["flops"], "peak": spread(peaks),
               "load": max(loads), "left_out": out, "methods": []}
        for key in right:
            row["methods"].append({
                "library": key[0], "method": key[1], "difference": right[key], "seconds": spread(seconds[key]),
                "time_over_headlight": spread([peer / ours for peer, ours in zip(seconds[key], seconds[own])])})
        return row

    def shape(self, words):
        path = self.folder / "inputs.safetensors"
        described = self.sides[OWN].request("make", shape=words, path=str(path))
        if "refused" in described:
            say(f"{words}: left out: {described['refused']}")
            return
        self.check.ask(json.dumps({"ask": "reference", "path": str(path)}))
        for threads in self.options.threads:
            row = self.time(described["words"], threads, path, described)
            say("\n".join(table([row]).splitlines()[2:]))
            for name, why in row["left_out"].items():
                say(f"    left out: {name}: {why}")
            yield row


def milliseconds(seconds):
    return f"{1e3 * seconds['median']:.3g} ({1e3 * seconds['lowest']:.3g} - {1e3 * seconds['highest']:.3g})"


def table(rows):
    lines = ["| shape | threads | Headlight ms (lowest - highest) | GFLOP/s | of the peak | best peer | its ms | "
             "its time over Headlight's | next |", "|---|---:|---:|---:|---:|---|---:|---:|---|"]
    for row in rows:
        own = next(method for method in row["methods"] if method["library"] == OWN)
        peers = sorted((method for method in row["methods"] if method["library"] != OWN),
                       key=lambda method: method["seconds"]["median"])
        rate = row["flops"] / own["seconds"]["median"]
        share = statistics.median(row["flops"] / took / peak
                                  for took, peak in zip(own["seconds"]["all"], row["peak"]["all"]))
        cells = [row["shape"], str(row["threads"]), milliseconds(own["seconds"]), f"{rate * 1e-9:.1f}",
                 f"{100 * share:.1f} %"]
        if peers:
            best, ratio = peers[0], peers[0]["time_over_headlight"]
            cells += [f"{best['library']} {best['method']}", milliseconds(best["seconds"]),
                      f"{ratio['median']:.2f} ({ratio['lowest']:.2f} - {ratio['highest']:.2f})"]
            cells.append("; ".join(f"{peer['library']} {peer['method']} {peer['time_over_headlight']['median']:.2f}"
                                   for peer in peers[1:]))
        else:
            cells += ["none", "", "", ""]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def shapes_of(options):
    """The words of --shape, or of the lists, each once."""
    if options.shape:
        return options.shape
    words = []
    for name in options.lists:
        path = SHAPES / f"{name}.txt" if (SHAPES / f"{name}.txt").exists() else pathlib.Path(name)
        lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
        words += [line for line in lines if line and line not in words]
    return words


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("lists", nargs="*", default=["dense", "masks", "short", "decoding", "backward"],
                        help="of bench/shapes, or files")
    parser.add_argument("--shape", action="append", help="instead of lists: 'b1 h8 n1024 d64 causal'; may be repeated")
    parser.add_argument("--venv", required=True, help="folder of the virtual environment")
    parser.add_argument("--programs", default="build/bench", help="folder of the sides in C++, from the bench preset")
    parser.add_argument("--out", help="JSON file for the result, written anew after every shape")
    parser.add_argument("--threads", type=lambda text: [int(word) for word in text.split(",")], default="1,2",
                        help="of every side")
    parser.add_argument("--repeats", type=int, default=7, help="turns")
    parser.add_argument("--seconds", type=float, default=0.1, help="that a side works in one turn, about")
    parser.add_argument("--patience", type=float, default=20, help="seconds that a peer's pass may take")
    parser.add_argument("--peers", nargs="*", default=["PyTorch", "ONNX Runtime", *ONEDNN], help="which")
    return parser.parse_args()


def main():
    options = parse()
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(options, folder)
        result = {"processor": processor(), "cores": len(os.sched_getaffinity(0)), "versions": comparison.versions,
                  "repeats": options.repeats, "date": time.strftime("%Y-%m-%d"), "rows": []}
        for words in shapes_of(options):
            for row in comparison.shape(words):
                result["rows"].append(row)
                if options.out:
                    pathlib.Path(options.out).write_text(json.dumps(result, indent=1) + "\n")
        comparison.close()
    if not result["rows"]:
        raise SystemExit("no shape was compared")
    print(f"{result['processor']}, {result['cores']} cores; {'; '.join(result['versions'].values())}; "
          f"{result['date']}; median of {options.repeats} turns; load {min(r['load'] for r in result['rows']):.1f} to "
          f"{max(r['load'] for r in result['rows']):.1f}\n")
    print(table(result["rows"]))


if __name__ == "__main__":
    main()
