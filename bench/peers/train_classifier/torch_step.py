"""The PyTorch side of the peer benchmark: trains on the batches that it is told on standard input.

One request a line, one JSON object a line back (the same protocol as headlight_step.cc):
  train 4,17,3;8,1,0     one step per list of rows of the training text
  eval                   accuracy and loss on the validation text
  load FILE              parameters from a safetensors file under Headlight's names; the optimizer starts anew
"""

import argparse
import json
import sys
import time

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch_classifier import Config, TextClassifier


class Texts:
    def __init__(self, tensors, part):
        self.ids = tensors[f"{part}.ids"].long()
        self.offsets = tensors[f"{part}.offsets"].tolist()
        self.labels = tensors[f"{part}.labels"].long()

    def batch(self, rows):
        """ids [batch, longest], padded with 0; lengths [batch]; labels [batch]."""
        texts = [self.ids[self.offsets[row]: self.offsets[row + 1]] for row in rows]
        lengths = torch.tensor([len(text) for text in texts])
        return torch.nn.utils.rnn.pad_sequence(texts, batch_first=True), lengths, self.labels[rows]


class Trainer:
    def __init__(self, options):
        tensors = load_file(options.data)
        self.train_texts, self.valid_texts = Texts(tensors, "train"), Texts(tensors, "valid")
        self.options = options
        config = Config(
            vocabulary=options.vocabulary, classes=options.classes, max_len=options.max_len, dim=options.dim,
            layers=options.layers, heads=options.heads, feed_forward=options.feed_forward,
            dropout=options.dropout, attention_dropout=options.dropout)
        self.model = TextClassifier(config)
        self.model.initialise(torch.Generator().manual_seed(options.seed))
        self.restart()
        self.run = torch.compile(self.model, dynamic=True) if options.compile else self.model

    def precision(self):
        """Products in bf16, parameters and sums in f32, where that is asked for."""
        return torch.autocast("cpu", torch.bfloat16, enabled=self.options.bf16)

    def restart(self):
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=self.options.lr, fused=True)

    def train(self, argument):
        self.model.train()
        steps = [[int(row) for row in step.split(",")] for step in argument.split(";")]
        tokens = padded = 0
        total_loss = 0.0
        start = time.perf_counter()
        for rows in steps:
            ids, lengths, labels = self.train_texts.batch(rows)
            self.optimizer.zero_grad(set_to_none=True)
            with self.precision():
                loss = F.cross_entropy(self.run(ids, lengths), labels)
            loss.backward()
            self.optimizer.step()
            total_loss += loss.item()
            tokens += int(lengths.sum())
            padded += ids.numel()
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "tokens": tokens, "padded": padded, "loss": total_loss / len(steps)}

    @torch.inference_mode()
    def eval(self, _):
        self.model.eval()
        texts = self.valid_texts
        order = sorted(range(len(texts.labels)), key=lambda row: texts.offsets[row + 1] - texts.offsets[row])
        correct, total_loss = 0, 0.0
        for begin in range(0, len(order), 64):
            ids, lengths, labels = texts.batch(order[begin: begin + 64])
            with self.precision():
                logits = self.model(ids, lengths)
            correct += int((logits.argmax(1) == labels).sum())
            total_loss += F.cross_entropy(logits, labels, reduction="sum").item()
        return {"accuracy": correct / len(order), "loss": total_loss / len(order)}

    def load(self, path):
        self.model.load_named(load_file(path))
        self.restart()
        return {"loaded": path}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="encoded texts, safetensors")
    for name, value in (("vocabulary", 20000), ("classes", 2), ("max-len", 512), ("dim", 256), ("layers", 2),
                        ("heads", 8), ("feed-forward", 1024), ("threads", 2), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--lr", type=float, default=0.001)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--compile", action="store_true", help="torch.compile with dynamic shapes")
    parser.add_argument("--bf16", action="store_true", help="autocast to bf16")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    trainer = Trainer(options)
    requests = {"train": trainer.train, "eval": trainer.eval, "load": trainer.load}
    print(json.dumps({"ready": f"PyTorch {torch.__version__}"}), flush=True)
    for line in sys.stdin:
        name, _, argument = line.strip().partition(" ")
        print(json.dumps(requests[name](argument)), flush=True)


if __name__ == "__main__":
    main()
