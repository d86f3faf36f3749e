#!/usr/bin/env python3
"""Is fused attention ever slower than attention through n x n matrices? Measures a grid of shapes, and shows how many
times as long the naive way takes.

    bench/naive.py                                  # forward, on one thread
    bench/naive.py --threads 2 --backward
    bench/naive.py --batches 1,32 --lengths 128,1024 --widths 64

`headlight bench --shape S --shape 'S by=naive'` measures a shape, in turns where both fit into 1 GiB. Shapes whose scores
take more than 2 GiB, or whose tensors take more than 4, are left out. Where the naive way seems more than 5 % faster, both
are measured again, three times as often: exit code 4 if it still is. Takes about ten minutes.
"""

import argparse
import json
import subprocess
import sys

HEADS = 8
MOST_SCORES, MOST_BYTES = 2 << 30, 4 << 30
SLOWEST = 1.05


def numbers(text):
    return [int(word) for word in text.split(",")]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bench/bin/headlight", help="(build/bench/bin/headlight)")
    parser.add_argument("--batches", type=numbers, default="1,4,16,64,256", help="(1,4,16,64,256)")
    parser.add_argument("--lengths", type=numbers, default="1,2,4,8,16,32,64,128,256,512,1024,2048,4096",
                        help="(powers of two from 1 to 4096)")
    parser.add_argument("--widths", type=numbers, default="16,32,64,128", help="of a head (16,32,64,128)")
    parser.add_argument("--threads", type=int, default=1, help="(1)")
    parser.add_argument("--repeats", type=int, default=5, help="turns (5)")
    parser.add_argument("--backward", action="store_true", help="the backward pass instead of the forward pass")
    return parser.parse_args()


def fits(options, batch, length, width):
    scores, tensors = batch * HEADS * length * length, 4 * batch * HEADS * length * width
    # A byte of flags for each score; gradients of all tensors.
    return (4 * scores <= MOST_SCORES and
            5 * scores + 4 * (2 if options.backward else 1) * tensors <= MOST_BYTES)


def ratio(options, shape, repeats):
    """The naive way's median time over the fused one's."""
    command = [options.program, "bench", "--json", "--threads", str(options.threads), "--repeats", str(repeats),
               "--seconds", "0.02", "--shape", shape, "--shape", shape + " by=naive"]
    fused, naive = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["results"]
    return naive["milliseconds"] / fused["milliseconds"]


def main():
    options = parse()
    print(f"naive / fused, {HEADS} heads, {'backward' if options.backward else 'forward'}, {options.threads} thread(s)\n")
    print("| batch | length | " + " | ".join(f"d{width}" for width in options.widths) + " |")
    print("|---:|---:|" + "---:|" * len(options.widths))
    slower, measured = [], 0
    for batch in options.batches:
        for length in options.lengths:
            cells = []
            for width in options.widths:
                if not fits(options, batch, length, width):
                    cells.append("")
                    continue
                shape = f"b{batch} h{HEADS} n{length} d{width}" + (" backward" if options.backward else "")
                found = ratio(options, shape, options.repeats)
                if found * SLOWEST < 1:
                    found = ratio(options, shape, 3 * options.repeats)
                if found * SLOWEST < 1:
                    slower.append(f"{shape}: {found:.2f}")
                measured += 1
                cells.append(f"{found:.2f}")
            if any(cells):
                print(f"| {batch} | {length} | " + " | ".join(cells) + " |", flush=True)
    print(f"\n{measured} shapes; fused is more than {SLOWEST} times as slow in {len(slower)}")
    print("\n".join(slower), end="\n" if slower else "")
    return 4 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
