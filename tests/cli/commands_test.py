#!/usr/bin/env python3
"""Every command does its job, on small data, from the shell.

Usage: commands_test.py PROGRAM [unittest arguments]
"""
import array
import json
import os
import random
import re
import signal
import subprocess
import time

import program
from program import SMALL, ProgramTest, run


class Commands(ProgramTest):
    def test_train_gives_its_result_as_json(self):
        result = json.loads(self.ok("train", "--data", self.data, "--out", self.folder / "r", "--json", *SMALL))
        self.assertEqual(result["parameters"], json.loads((self.folder / "r" / "result.json").read_text())["parameters"])
        for name in ("config.toml", "environment.json", "metrics.jsonl", "text.json", "checkpoints/last.safetensors"):
            self.assertTrue((self.folder / "r" / name).exists(), name)

    def test_train_does_not_overwrite_unless_told(self):
        self.assertEqual(run("train", "--data", self.data, "--out", self.run_directory, *SMALL).returncode, 2)

    def test_piped_output_is_plain_text(self):
        result = run("train", "--data", self.data, "--out", self.folder / "r", *SMALL)
        self.assertNotIn(b"\x1b", result.stdout + result.stderr)
        self.assertNotIn(b"\r", result.stderr)

    def test_eval(self):
        result = json.loads(self.ok("eval", self.run_directory, "--data", self.data, "--json"))
        self.assertEqual(result["texts"], 40)
        self.assertEqual(sum(map(sum, result["confusion"])), 40)

    def test_predict_text_file_and_lines_agree(self):
        lines = "good fine word1\nbad awful word2\r\n"
        path = self.folder / "lines.txt"
        path.write_text(lines, newline="")
        from_file = self.ok("predict", self.run_directory, "--file", path, "--json")
        from_stdin = self.ok("predict", self.run_directory, "--json", stdin=lines)
        alone = self.ok("predict", self.run_directory, "bad awful word2", "--json")
        self.assertEqual(from_file, from_stdin)
        self.assertEqual(from_file.splitlines()[1], alone.strip())
        probabilities = json.loads(alone)["probabilities"]
        self.assertAlmostEqual(sum(probabilities.values()), 1, places=5)

    def test_predict_the_empty_text(self):
        row = json.loads(self.ok("predict", self.run_directory, "", "--json", stdin="good\nbad\n"))
        self.assertEqual((row["text"], row["tokens"]), ("", 0))

    def test_predict_prints_a_label_as_one_field(self):
        path = self.folder / "d.jsonl"
        path.write_text("".join(json.dumps({"text": f"{'good' if i % 2 else 'bad'} {i}", "label": f"a\tb{i % 2}"}) + "\n"
                                for i in range(20)))
        out = self.folder / "run"
        self.ok("train", "--data", path, "--out", out, *SMALL)
        self.assertEqual(len(self.ok("predict", out, "good").decode().split("\t")), 3)

    def test_a_text_scores_the_same_alone_and_in_any_batch(self):
        texts = [f"good word{i % 9} bad number {i} " * (1 + i % 12) for i in range(70)]
        together = self.ok("predict", self.run_directory, "--json", stdin="\n".join(texts) + "\n").splitlines()
        for i in (0, 1, 13, 69):
            self.assertEqual(self.ok("predict", self.run_directory, texts[i].strip(), "--json").strip(),
                             together[i].replace(texts[i].encode(), texts[i].strip().encode()))

    def test_bf16(self):
        out = self.folder / "bf16"
        run("train", "--data", self.data, "--out", out, *SMALL, "--precision", "bf16")
        self.assertIn("precision = 'bf16'", (out / "config.toml").read_text())
        text = "bad awful word2"
        own = self.ok("predict", out, text, "--json")
        self.assertEqual(self.ok("predict", out, text, "--json", "--precision", "bf16"), own)
        exact = self.ok("predict", out, text, "--json", "--precision", "fp32")
        self.assertNotEqual(exact, own)
        self.assertAlmostEqual(json.loads(exact)["probability"], json.loads(own)["probability"], places=1)
        self.assertEqual(json.loads(self.ok("eval", out, "--data", self.data, "--json",
                                            "--precision", "fp32"))["texts"], 40)
        wrong = run("predict", out, text, "--precision", "fp8")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn(b"must be one of fp32, bf16", wrong.stderr)

    def test_runs(self):
        rows = json.loads(self.ok("runs", self.shared, "--json"))
        self.assertIn(str(self.run_directory), [row["run"] for row in rows])

    def test_compare_makes_all_reports_and_goes_on(self):
        out = self.folder / "c"
        arguments = ("compare", "--data", self.data, "--out", out, "--seeds", 2, *SMALL, "--heads", "1,2", "--json")
        table = json.loads(self.ok(*arguments))
        self.assertEqual([row["heads"] for row in table], ["1", "2", "words + bigrams"])
        for name in ("report.html", "report.md", "report.csv", "report.json"):
            self.assertTrue((out / name).stat().st_size > 100, name)
        before = {p: p.stat().st_mtime_ns for p in out.rglob("last.safetensors")}
        self.assertEqual(len(before), 4)
        self.assertEqual(json.loads(self.ok(*arguments)), table)
        self.assertEqual({p: p.stat().st_mtime_ns for p in out.rglob("last.safetensors")}, before)

    def test_describe_of_a_test_part_alone(self):
        for label in ("neg", "pos"):
            (self.folder / "part" / "test" / label).mkdir(parents=True)
            for i in range(3):
                (self.folder / "part" / "test" / label / f"{i}.txt").write_text(f"{label} text {i}")
        described = json.loads(self.ok("data", "describe", self.folder / "part", "--json"))
        self.assertEqual(described["rows"], 6)
        both = json.loads(self.ok("data", "describe", self.folder / "part", "--valid", self.data, "--json"))
        self.assertEqual(both["rows"], 6)
        self.assertGreater(both["valid"]["rows"], 6)

    def test_compare_takes_one_head_count_at_its_word(self):
        table = json.loads(self.ok("compare", "--data", self.data, "--out", self.folder / "c", *SMALL, "--heads", 2,
                                   "--no-baseline", "--json"))
        self.assertEqual([row["heads"] for row in table], ["2"])

    def test_compare_varies_any_flag(self):
        table = json.loads(self.ok("compare", "--data", self.data, "--out", self.folder / "c", *SMALL, "--vary",
                                   "head-dim=split,16", "--vary", "norm=pre,post", "--no-baseline", "--json"))
        self.assertEqual([(row["head-dim"], row["norm"]) for row in table],
                         [("split", "pre"), ("split", "post"), ("16", "pre"), ("16", "post")])
        self.assertGreater(table[2]["parameters"], table[0]["parameters"])

    def test_compare_goes_on_where_a_run_diverges(self):
        # A rate of 1000000 makes each step's decay multiply the weights by -1000000.
        arguments = ("compare", "--data", self.data, *SMALL, "--clip", "off", "--optimizer", "adamw", "--weight-decay", 1,
                     "--no-baseline")
        for _ in range(2):  # the second time on what the first left
            out = self.folder / "c"
            result = program.run(*arguments, "--vary", "lr=1000000,0.001", "--out", out)
            self.assertEqual(result.returncode, 1)
            for text in (result.stdout.decode(), (out / "report.md").read_text()):
                self.assertRegex(text, r"1000000 .*seed 1.*failed")
                self.assertRegex(text, r"lr=1000000 with seed 1 failed .*lr-1000000_seed-1\): training: .* at step \d+")
            self.assertRegex(result.stderr.decode(), r"failed, .*c/lr-1000000_seed-1\n")
            rows = json.loads((out / "report.json").read_text())
            self.assertEqual([(row["lr"], row["seeds"]) for row in rows], [("0.001", 1), ("1000000", None)])
            self.assertTrue((out / "report.html").exists())
        result = program.run(*arguments, "--lr", "1000000", "--vary", "heads=1,2", "--out", self.folder / "all")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr.decode(), r"every run failed, the first in .*all/heads-1_seed-1: training: ")

    def test_compare_of_implementations_and_key_value_heads(self):
        out = self.folder / "c"
        table = json.loads(self.ok("compare", "--data", self.data, "--out", out, *SMALL, "--vary",
                                   "attention=naive,per-head,fused", "--vary", "kv-heads=2,1", "--window", "6,3",
                                   "--no-baseline", "--json"))
        self.assertEqual([(row["attention"], row["kv-heads"]) for row in table],
                         [(a, k) for a in ("naive", "per-head", "fused") for k in ("2", "1")])
        for i in (2, 4):  # of the same key/value heads, up to rounding
            for row, other in ((table[0], table[i]), (table[1], table[i + 1])):
                self.assertEqual(row["parameters"], other["parameters"])
                self.assertAlmostEqual(row["valid_loss"], other["valid_loss"], places=4)
        # dim 16, two heads of 8: one key and one value head less are 2 x 8 x (16 + 1) parameters.
        self.assertEqual(table[0]["parameters"] - table[1]["parameters"], 272)
        peaks = {attention: json.loads((out / f"attention-{attention}_kv-heads-2_seed-1" / "result.json").read_text())
                 ["measured"]["peak_bytes"]["activations"] for attention in ("naive", "per-head", "fused")}
        self.assertGreater(min(peaks["naive"], peaks["per-head"]), peaks["fused"])  # the n x n matrices
        page = (out / "report.html").read_text()
        self.assertIn("per-head", page)
        self.assertIn('window = \'6:3\'', (out / "attention-naive_kv-heads-2_seed-1" / "config.toml").read_text())

    def test_every_attention_flag_in_every_command(self):
        flags = ["--kv-heads", 1, "--qk-rank", 3, "--window", "2,1", "--positions", "relative"]
        for attention in ("naive", "per-head", "fused"):
            out = self.folder / attention
            self.ok("train", "--data", self.data, "--out", out, *SMALL, *flags, "--attention", attention)
            config = (out / "config.toml").read_text()
            for line in ("kv_heads = 1", "qk_rank = 3", "window = '2:1'", f"attention = '{attention}'"):
                self.assertIn(line + "\n", config)
            self.assertEqual(json.loads(self.ok("eval", out, "--data", self.data, "--json"))["texts"], 40)
            self.assertIn("label", json.loads(self.ok("predict", out, "bad awful word2", "--json")))
            self.assertEqual(len(json.loads(self.ok("heads", out, "--json"))["heads"]), 2)
            picture = json.loads(self.ok("show", out, "good fine word1 number 3 bad", "--format", "json"))
            n = len(picture["tokens"])
            for head in picture["weights"][0]:
                flat = head if not isinstance(head[0], list) else [w for row in head for w in row]
                for i in range(n):
                    for j in range(n):
                        self.assertEqual(flat[i * n + j] > 0, i - 2 <= j <= i + 1, (attention, i, j))

    def test_runs_without_the_new_keys_are_what_they_were(self):
        out = self.folder / "old"
        self.ok("train", "--data", self.data, "--out", out, *SMALL)
        config = out / "config.toml"
        text = config.read_text()
        for key in ("kv_heads", "qk_rank", "window", "attention"):
            text = re.sub(rf"(?m)^{key} = .*\n", "", text)
        before = self.ok("predict", out, "bad awful word2", "--json")
        config.write_text(text)
        self.assertEqual(self.ok("predict", out, "bad awful word2", "--json"), before)
        self.ok("train", "--data", self.data, "--out", out, "--resume", *SMALL)

    def test_show_in_every_format_gives_the_same_bytes_twice(self):
        for kind, magic in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("html", b"<!doctype html"),
                            ("csv", b"layer,head"), ("json", b"{"), ("npy", b"\x93NUMPY")):
            paths = [self.folder / f"{i}.{kind}" for i in (1, 2)]
            for path in paths:
                self.ok("show", self.run_directory, "good 这只猫很可爱 word1 .", "--format", kind, "--out", path)
            data = paths[0].read_bytes()
            self.assertTrue(data.lower().startswith(magic.lower()), (kind, data[:20]))
            self.assertEqual(data, paths[1].read_bytes(), kind)

    def test_show_rows_sum_to_one(self):
        picture = json.loads(self.ok("show", self.run_directory, "good fine word1 number", "--format", "json"))
        n = len(picture["tokens"])
        for head in picture["weights"][0]:
            flat = head if not isinstance(head[0], list) else [w for row in head for w in row]
            for row in range(n):
                self.assertAlmostEqual(sum(flat[row * n:(row + 1) * n]), 1, places=5)
        path = self.folder / "a.npy"
        self.ok("show", self.run_directory, "good fine word1 number", "--format", "npy", "--out", path)
        values = array.array("f", path.read_bytes()[-2 * n * n * 4:])
        self.assertAlmostEqual(sum(values), 2 * n, places=4)

    def test_show_writes_the_chosen_heads(self):
        text = "good fine word1 number"
        show = ["show", self.run_directory, text, "--head", 1, "--format"]
        rows = self.ok(*show, "csv").decode().splitlines()
        self.assertEqual({row.split(",")[1] for row in rows[1:]}, {"1"})
        picture = json.loads(self.ok(*show, "json"))
        whole = json.loads(self.ok("show", self.run_directory, text, "--format", "json"))
        self.assertEqual((picture["first_layer"], picture["first_head"], picture["heads"]), (0, 1, 1))
        self.assertEqual(picture["weights"], [[whole["weights"][0][1]]])
        self.assertEqual(len(picture["figures"][0]), 1)
        path = self.folder / "a.npy"
        self.ok(*show, "npy", "--out", path)
        n = len(picture["tokens"])
        self.assertIn(f"(1, 1, {n}, {n})".encode(), path.read_bytes())

    def test_show_takes_the_format_from_the_file(self):
        for kind, magic in (("png", b"\x89PNG"), ("csv", b"layer,head"), ("html", b"<!doctype html")):
            path = self.folder / f"a.{kind}"
            self.assertEqual(self.ok("show", self.run_directory, "good word1", "--out", path), b"")
            self.assertTrue(path.read_bytes().startswith(magic))
        path = self.folder / "text"
        self.ok("show", self.run_directory, "good word1", "--format", "terminal", "--out", path)
        self.assertEqual(path.read_bytes(), self.ok("show", self.run_directory, "good word1"))

    def test_show_on_the_terminal(self):
        text = self.ok("show", self.run_directory, "这只猫很可爱，它正在喝牛奶").decode()
        self.assertIn("猫", text)
        self.assertNotIn("\x1b", text)

    def test_data_split_keeps_copies_together(self):
        path = self.folder / "d.csv"
        path.write_text("text,label\n" + "".join(f"word {i % 30},{'a' if i % 2 else 'b'}\n" for i in range(60)))
        train, valid = self.folder / "t.csv", self.folder / "v.jsonl"
        self.ok("data", "split", path, "--train-out", train, "--valid-out", valid, "--valid-share", 0.25)
        both = json.loads(self.ok("data", "describe", train, "--valid", valid, "--json"))
        self.assertEqual(both["rows"] + both["valid"]["rows"], 60)
        defects = {d["name"]: d["count"] for d in both["defects"]}
        self.assertEqual(defects["texts in both train and valid"], 0)

    def test_relations_and_heads(self):
        for language in ("en", "zh"):
            train, valid = self.folder / f"{language}1.jsonl", self.folder / f"{language}2.jsonl"
            self.ok("data", "make", "relations", "--language", language, "--count", 64, "--seed", 1, "--out", train)
            self.ok("data", "make", "relations", "--language", language, "--count", 32, "--seed", 2, "--out", valid)
            out = self.folder / f"run-{language}"
            self.ok("train", "--data", train, "--valid", valid, "--out", out, *SMALL)
            result = json.loads(self.ok("heads", out, "--gold", valid, "--json"))
            self.assertEqual(len(result["heads"]), 2)
            self.assertEqual({row["relation"] for row in result["relations"]},
                             {"pronoun", "verb-object", "adjective", "subject", "punctuation"})
            self.assertEqual(len(json.loads(self.ok("heads", out, "--json"))["heads"]), 2)

    def test_profile_and_its_trace(self):
        trace = self.folder / "trace.json"
        result = json.loads(self.ok("profile", self.run_directory, "--profile-steps", 3, "--json", "--trace", trace))
        self.assertAlmostEqual(sum(row["share"] for row in result["training"]["stages"][:-1]), 1, places=3)
        self.assertGreater(len(json.loads(trace.read_text())["traceEvents"]), 20)
        self.assertRegex(result["attention"], r"^fused f32 ")

    def test_profile_says_which_attention_it_measures(self):
        text = self.ok("profile", "--data", self.data, *SMALL, "--attention", "per-head", "--profile-steps", 2).decode()
        self.assertIn("attention: per-head f32\n", text)

    def test_bench_times_shapes_on_every_thread_count(self):
        result = json.loads(self.ok("bench", "--shape", "b2 h2 n9 d8 causal", "--shape", "n5 d8 f64", "--threads", "1,2",
                                    "--repeats", 2, "--seconds", 0, "--json"))
        self.assertEqual(result["repeats"], 2)
        rows = result["results"]
        self.assertEqual([(row["shape"], row["threads"]) for row in rows],
                         [("b2 h2 n9 d8 causal", 1), ("b2 h2 n9 d8 causal", 2), ("b1 h1 n5 d8 f64", 1),
                          ("b1 h1 n5 d8 f64", 2)])
        for row in rows:
            self.assertLessEqual(row["lowest_milliseconds"], row["milliseconds"])
            self.assertLessEqual(row["milliseconds"], row["highest_milliseconds"])
            # 4 d floating-point operations for each head and kept key.
            flops = 4 * 8 * (2 * 2 * 45 if "causal" in row["shape"] else 25)
            self.assertAlmostEqual(row["gflops_per_second"] * row["milliseconds"] / (flops * 1e-6), 1, places=6)
            self.assertGreater(row["peak_gflops_per_second"], 0.1)
        self.assertGreater(rows[0]["share_of_peak"], 0)
        self.assertIsNone(rows[2]["share_of_peak"])

    def test_bench_explains_every_built_in_list(self):
        plans = json.loads(self.ok("bench", "--explain", "--json"))
        self.assertGreater(len(plans), 30)
        shapes = {plan["shape"] for plan in plans}
        self.assertIn("b1 h8 kv2 q1 n4096 d64", shapes)
        self.assertIn("b1 h8 n4096 d64 window=128,128 backward", shapes)
        self.assertTrue(all(plan["kernel"] for plan in plans))
        text = self.ok("bench", "--explain", "--shape", "n5 d8 f64").decode()
        self.assertRegex(text, r"b1 h1 n5 d8 f64: reference f64\n  not fused f32: .*f64")

    def test_bench_reads_lists(self):
        path = self.folder / "mine.txt"
        path.write_text("# mine\nn5 d8\n\nn6 d8 causal # later\n")
        shapes = [plan["shape"] for plan in json.loads(self.ok("bench", path, "decoding", "--explain", "--json"))]
        self.assertEqual(shapes[:3], ["b1 h1 n5 d8", "b1 h1 n6 d8 causal", "b1 h8 q1 n4096 d64"])
        table = self.ok("bench", path, "--repeats", 1, "--seconds", 0).decode()
        self.assertIn("mine.txt", table)
        self.assertRegex(table, r"(?m)^b1 h1 n6 d8 causal +\d+ +[0-9.]+ \([0-9.]+ - [0-9.]+\)")

    def test_bench_is_interrupted(self):
        process = subprocess.Popen([program.program, "bench", "--shape", "n64 d8", "--repeats", "10000"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, message = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, message)
        self.assertEqual(out, b"")

    def test_help_names_the_values_that_messages_name(self):
        self.assertRegex(self.ok("train", "--help").decode(), r"--causal true\|false=false")

    def test_gradcheck(self):
        rows = json.loads(self.ok("gradcheck", "--json", "--values", 2))
        self.assertGreater(len(rows), 100)
        self.assertEqual({row["ok"] for row in rows}, {"ok"})

    def test_completions_are_made_from_the_flags(self):
        script = self.ok("completions", "bash").decode()
        for flag in ("--head-dim", "--kv-heads", "--qk-rank", "--window", "--attention"):
            self.assertIn(flag + " ", script)
        subprocess.run(["bash", "-n"], input=script.encode(), check=True)


LONGER = ["--dim", "32", "--layers", "2", "--heads", "4", "--epochs", "3", "--batch", "4", "--seed", "3",
          "--checkpoint-every", "5", "--log-every", "4", "--probe-every", "6"]


class Interruption(ProgramTest):
    def test_what_saves_nothing_ends_at_once(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        out = self.folder / "relations.jsonl"
        for arguments in (["predict", self.run_directory],
                          ["bench", "--threads", 1, "--seconds", 60, "--shape", "n512 d64"],
                          ["data", "describe", pipe],
                          ["compare", "--data", pipe, "--out", self.folder / "c"],
                          ["data", "make", "relations", "--count", 1_000_000, "--out", out]):
            for stop in (signal.SIGINT, signal.SIGTERM):
                process = subprocess.Popen([program.program, *map(str, arguments)], stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                time.sleep(0.4)
                process.send_signal(stop)
                try:
                    self.assertEqual(process.wait(timeout=2), 130, arguments)
                finally:
                    process.kill()
                    process.communicate()
        self.assertEqual(list(self.folder.iterdir()), [pipe])

    def reference(self):
        out = self.folder / "reference"
        self.ok("train", "--data", self.data, "--out", out, *LONGER)
        return (out / "checkpoints" / "last.safetensors").read_bytes()

    def start(self, out):
        return subprocess.Popen([program.program, "train", "--data", self.data, "--out", out, "--resume", *LONGER],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def test_killed_runs_resume_to_the_same_bits(self):
        expected = self.reference()
        kills = int(os.environ.get("HEADLIGHT_KILLS", "3"))
        drawn = random.Random(1)
        for attempt in range(kills):
            out = self.folder / f"killed{attempt}"
            process = self.start(out)
            time.sleep(drawn.uniform(0.02, 0.35))
            process.kill()
            process.wait()
            self.ok("train", "--data", self.data, "--out", out, "--resume", *LONGER)
            self.assertEqual((out / "checkpoints" / "last.safetensors").read_bytes(), expected, attempt)

    def test_interrupt_saves_and_exits_130(self):
        out = self.folder / "interrupted"
        process = subprocess.Popen([program.program, "train", "--data", self.data, "--out", out, *LONGER, "--epochs",
                                    "100000"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while not (out / "metrics.jsonl").exists() and process.poll() is None:
            time.sleep(0.02)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, message = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, message)
        self.assertTrue((out / "checkpoints" / "last.safetensors").exists())
        self.assertIn(b"resuming", message)

    def test_threads_do_not_change_bits_of_any_attention(self):
        for attention in ("naive", "per-head", "fused"):
            seen = set()
            for threads in (1, 2, 3):
                out = self.folder / f"{attention}{threads}"
                self.ok("train", "--data", self.data, "--out", out, *LONGER, "--threads", threads, "--attention",
                        attention, "--kv-heads", 2, "--window", 5, "--positions", "relative", "--epochs", 1)
                seen.add((out / "checkpoints" / "last.safetensors").read_bytes())
            self.assertEqual(len(seen), 1, attention)

    def test_threads_do_not_change_bits(self):
        expected = self.reference()
        for isa in ("", "avx2"):
            seen = set()
            for threads in (1, 2, 3):
                out = self.folder / f"threads{threads}{isa}"
                result = run("train", "--data", self.data, "--out", out, *LONGER, "--threads", threads,
                             env={"HEADLIGHT_ISA": isa})
                if isa and b"lacks" in result.stderr:
                    self.skipTest("this CPU lacks " + isa)
                self.assertEqual(result.returncode, 0, result.stderr)
                seen.add((out / "checkpoints" / "last.safetensors").read_bytes())
            self.assertEqual(len(seen), 1, isa)
            if not isa:
                self.assertEqual(seen, {expected})


if __name__ == "__main__":
    program.main()
