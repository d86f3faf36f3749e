#!/usr/bin/env python3
"""Times or compares the training of one classifier by Headlight and by PyTorch. README.md says how to use it.

Only the standard library is needed here; PyTorch lives in the virtual environment that --venv names, which is made
when it is not there. Nothing is written but that folder and the file that --out names.
"""

import argparse
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from peers import KEEP_MEMORY, Side, processor, python_of, say, spread  # noqa: E402

REQUIREMENTS = HERE / "requirements.txt"
# Two-sided 95 % points of Student's t by degrees of freedom.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228,
           11: 2.201, 12: 2.179, 13: 2.160, 14: 2.145, 15: 2.131, 16: 2.120, 17: 2.110, 18: 2.101, 19: 2.093}
MODEL = ("dim", "layers", "heads", "feed-forward")


class Trainer(Side):
    def train(self, batches):
        return self.ask("train " + ";".join(",".join(map(str, batch)) for batch in batches))


class Batches:
    """Endless batches of rows, an epoch after another, from a seed."""

    def __init__(self, lengths, size, bucketed, seed):
        self.lengths, self.size, self.bucketed = lengths, size, bucketed
        self.random = random.Random(seed)
        self.waiting = []

    def epoch(self):
        rows = list(range(len(self.lengths)))
        self.random.shuffle(rows)
        if self.bucketed:  # neighbours in length; equal lengths stay shuffled
            rows.sort(key=lambda row: self.lengths[row])
        batches = [rows[begin: begin + self.size] for begin in range(0, len(rows), self.size)]
        self.random.shuffle(batches)
        return batches

    def take(self, count):
        while len(self.waiting) < count:
            self.waiting += self.epoch()
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        return taken


class Setting:
    """What all sides share: the encoded text and the model's flags."""

    def __init__(self, options, folder):
        self.options = options
        self.encoded = pathlib.Path(folder) / "texts.safetensors"
        say("encoding the texts")
        done = subprocess.run(
            [options.program, "prepare", self.encoded, "--data", options.data, "--max-len", str(options.max_len),
             "--vocabulary", str(options.vocabulary)], check=True, stdout=subprocess.PIPE, text=True)
        self.texts = json.loads(done.stdout)
        self.lengths = self.read_lengths()
        self.flags = [word for name in MODEL for word in (f"--{name}", getattr(options, name.replace("-", "_")))]
        self.flags += ["--lr", options.lr, "--threads", options.threads]

    def read_lengths(self):
        with open(self.encoded, "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            start = file.tell()
            begin, end = header["train.offsets"]["data_offsets"]
            file.seek(start + begin)
            raw = file.read(end - begin)
        offsets = [int.from_bytes(raw[at: at + 8], "little") for at in range(0, len(raw), 8)]
        return [b - a for a, b in zip(offsets, offsets[1:])]

    def headlight(self, precision="fp32"):
        flags = [*self.flags, "--dropout", self.options.dropout, "--attention-dropout", self.options.dropout,
                 "--precision", precision]
        return Trainer(f"Headlight {precision}", [self.options.program, "serve", self.encoded, *flags])

    def torch(self, name, extra=(), environment=None):
        command = [python_of(self.options.venv, REQUIREMENTS), HERE / "torch_step.py", "--data", self.encoded, *self.flags,
                   "--dropout", self.options.dropout, "--vocabulary", self.texts["vocabulary"], "--classes",
                   self.texts["classes"], "--max-len", self.texts["max_len"], *extra]
        return Trainer(name, command, environment)


def speed(options, setting):
    """Blocks of steps in turn: each side works alone while the others wait."""
    sides = {
        "headlight": (setting.headlight(), False),
        "torch random": (setting.torch("torch random"), False),
        "torch bucketed": (setting.torch("torch bucketed"), True),
    }
    if options.tuned:
        sides["torch bucketed, memory kept"] = (
            setting.torch("torch bucketed, memory kept", (), KEEP_MEMORY), True)
        sides["torch random, memory kept"] = (
            setting.torch("torch random, memory kept", (), KEEP_MEMORY), False)
    if options.bf16:
        sides["headlight bf16"] = (setting.headlight("bf16"), False)
        sides["torch bucketed, bf16"] = (setting.torch("torch bucketed, bf16", ["--bf16"], KEEP_MEMORY), True)
    batches = {name: Batches(setting.lengths, options.batch, bucketed, seed=1)
               for name, (_, bucketed) in sides.items()}
    for name, (side, _) in sides.items():
        say(f"warming up: {name} ({side.ready['ready']})")
        side.train(batches[name].take(options.warm_up))
    rates = {name: [] for name in sides}
    padded = dict.fromkeys(sides, 0)
    real = dict.fromkeys(sides, 0)
    order = list(sides)
    for block in range(options.blocks):
        for name in order:
            done = sides[name][0].train(batches[name].take(options.steps))
            rates[name].append(done["tokens"] / done["seconds"])
            padded[name] += done["padded"]
            real[name] += done["tokens"]
        say(f"block {block + 1} of {options.blocks}: " +
            ", ".join(f"{name} {rates[name][-1]:.0f} tokens/s" for name in sides))
        order.reverse()
    result = {"sides": {}, "ratios": {}}
    for name, (side, _) in sides.items():
        result["sides"][name] = {
            "version": side.ready["ready"], "tokens_per_second": spread(rates[name]),
            "computed_per_real_token": padded[name] / real[name],
            "peak_resident_bytes": side.memory("VmHWM"), "resident_bytes_before_the_first_step": side.idle_bytes}
        side.close()
    own = result["sides"]["headlight"]
    for name in order:
        if name == "headlight":
            continue
        result["ratios"][name] = {
            "speed": spread([a / b for a, b in zip(rates["headlight"], rates[name])]),
            "memory": own["peak_resident_bytes"] / result["sides"][name]["peak_resident_bytes"]}
    return result


def speed_table(result):
    lines = ["| side | tokens of real text/s (lowest - highest) | computed / real tokens | peak resident MiB "
             "| Headlight's speed over it | Headlight's memory over it |", "|---|---|---|---|---|---|"]
    for name, side in result["sides"].items():
        rate = side["tokens_per_second"]
        ratio = result["ratios"].get(name)
        compared = "| | |" if ratio is None else (
            f"| {ratio['speed']['median']:.2f} ({ratio['speed']['lowest']:.2f} - {ratio['speed']['highest']:.2f}) "
            f"| {ratio['memory']:.2f} |")
        lines.append(
            f"| {name}: {side['version']} | {rate['median']:.0f} ({rate['lowest']:.0f} - {rate['highest']:.0f}) "
            f"| {side['computed_per_real_token']:.2f} | {side['peak_resident_bytes'] / 2**20:.0f} {compared}")
    return "\n".join(lines)


def accuracy(options, setting):
    """Pairs of trainings from the same initial weights on the same batches."""
    pairs = []
    headlight, torch = setting.headlight(), setting.torch("torch")
    rows = min(options.rows or len(setting.lengths), len(setting.lengths))
    chosen = random.Random(0).sample(range(len(setting.lengths)), rows)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, options.seeds + 1):
            initial = os.path.join(folder, f"initial_{seed}.safetensors")
            headlight.ask(f"init {seed} {initial}")
            torch.ask(f"load {initial}")
            source = Batches([setting.lengths[row] for row in chosen], options.batch, True, seed)
            pair = {"seed": seed, "headlight": [], "torch": []}
            for epoch in range(1, options.epochs + 1):
                batches = [[chosen[index] for index in batch] for batch in source.epoch()]
                for name, side in (("headlight", headlight), ("torch", torch)):
                    trained = side.train(batches)
                    pair[name].append({"train_loss": trained["loss"], **side.ask("eval")})
                say(f"seed {seed}, epoch {epoch}: " + ", ".join(
                    f"{name} {100 * pair[name][-1]['accuracy']:.2f} % (train loss {pair[name][-1]['train_loss']:.4f})"
                    for name in ("headlight", "torch")))
            pairs.append(pair)
    headlight.close()
    torch.close()
    differences = [100 * (pair["headlight"][-1]["accuracy"] - pair["torch"][-1]["accuracy"]) for pair in pairs]
    mean = statistics.mean(differences)
    half = None
    if len(differences) > 1:
        half = STUDENT[len(differences) - 1] * statistics.stdev(differences) / math.sqrt(len(differences))
    return {"pairs": pairs, "train_rows": rows, "difference_in_points": {
        "mean": mean, "interval_95": None if half is None else [mean - half, mean + half], "all": differences}}


def accuracy_table(result):
    lines = ["| seed | Headlight | PyTorch | difference in points |", "|---|---|---|---|"]
    for pair, difference in zip(result["pairs"], result["difference_in_points"]["all"]):
        lines.append(f"| {pair['seed']} | {100 * pair['headlight'][-1]['accuracy']:.2f} % "
                     f"| {100 * pair['torch'][-1]['accuracy']:.2f} % | {difference:+.2f} |")
    difference = result["difference_in_points"]
    interval = difference["interval_95"]
    words = "" if interval is None else f" (95 % interval {interval[0]:+.2f} to {interval[1]:+.2f})"
    return "\n".join(lines) + f"\n\nMean difference {difference['mean']:+.2f} points{words}."


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("what", choices=["speed", "accuracy"])
    parser.add_argument("--venv", required=True, help="folder of the virtual environment")
    parser.add_argument("--data", required=True, help="text with labels, with a train and a valid part")
    parser.add_argument("--program", default="build/bench/headlight_step", help="from the bench preset")
    parser.add_argument("--out", help="JSON file for the result")
    for name, value, text in (
            ("max-len", 512, "tokens"), ("vocabulary", 20000, "tokens"), ("dim", 256, ""), ("layers", 2, ""),
            ("heads", 8, ""), ("feed-forward", 1024, ""), ("batch", 32, "texts"), ("threads", 2, "of each side"),
            ("blocks", 7, "speed: blocks"), ("steps", 20, "speed: steps in a block"),
            ("warm-up", 10, "speed: steps before the first block"), ("seeds", 5, "accuracy: pairs"),
            ("epochs", 3, "accuracy: epochs of each training"),
            ("rows", 0, "accuracy: training texts, drawn once (0: all)")):
        parser.add_argument(f"--{name}", type=int, default=value, help=text or "of the model")
    parser.add_argument("--lr", type=float, default=0.001, help="learning rate")
    parser.add_argument("--dropout", type=float, default=0.0, help="everywhere")
    parser.add_argument("--bf16", action="store_true",
                        help="speed: Headlight with --precision bf16 too, and PyTorch with autocast and memory kept")
    parser.add_argument("--tuned", action="store_true", help="speed: PyTorch also with memory kept by the allocator")
    return parser.parse_args()


def main():
    options = parse()
    python_of(options.venv, REQUIREMENTS)
    with tempfile.TemporaryDirectory() as folder:
        setting = Setting(options, folder)
        result = (speed if options.what == "speed" else accuracy)(options, setting)
    result = {"what": options.what, "processor": processor(), "texts": setting.texts,
              "options": {key: value for key, value in vars(options).items() if key not in ("venv", "data", "out")},
              **result}
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(result, indent=1) + "\n")
    print((speed_table if options.what == "speed" else accuracy_table)(result))


if __name__ == "__main__":
    main()
