#!/usr/bin/env python3
"""Bad input: each case has its message and its exit code, leaves nothing behind, and ends soon.

Usage: bad_input_test.py PROGRAM [unittest arguments]
"""
import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import tarfile

import program
from program import SMALL, ProgramTest, run

USAGE, INPUT, FAILED = 2, 3, 1


def archive_of(content, path, compression="", name=None):
    """A tar of one file or folder."""
    with tarfile.open(path, f"w:{compression}") as tar:
        tar.add(content, arcname=name or content.name)
    return path


class Case(ProgramTest):
    def expect(self, code, pattern, *arguments, **options):
        result = run(*arguments, **options)
        message = result.stderr.decode("utf-8", "replace")
        self.assertEqual(result.returncode, code, message)
        self.assertRegex(message, re.compile(pattern, re.IGNORECASE | re.DOTALL))
        self.assertNotRegex(message, r"(?i)terminate called|segmentation|assertion|internal:")
        self.assertLessEqual(len(message.strip().splitlines()), 3, "one message: " + message)
        return result

    def train(self, code, pattern, *arguments, data=None, **options):
        out = self.folder / "out"
        result = self.expect(code, pattern, "train", "--data", data or self.data, "--out", out, *SMALL, *arguments,
                             **options)
        self.assertFalse((out / "result.json").exists())
        return result

    def copy_run(self):
        target = self.folder / "run"
        shutil.copytree(self.run_directory, target)
        return target

    def checkpoint(self, run_directory):
        return next((run_directory / "checkpoints").glob("best*.safetensors"))


class Usage(Case):
    def test_no_such_command(self):
        self.expect(USAGE, r"no command .*nonsense", "nonsense")

    def test_no_such_flag(self):
        self.expect(USAGE, r"--colour", "train", "--data", self.data, "--out", self.folder / "o", "--colour")

    def test_flags_with_control_characters(self):
        for arguments in (["gradcheck", "--\x1b[31mred"], ["\x1b[31mred"], ["gradcheck", "--seed", "\x1b[31mred"]):
            result = self.expect(USAGE, r"headlight: .*␛\[31mred", *arguments)
            self.assertNotIn(b"\x1b", result.stderr)

    def test_no_data_flag(self):
        self.expect(USAGE, r"--data", "train", "--out", self.folder / "o")

    def test_heads_that_do_not_divide(self):
        self.train(USAGE, r"heads.*16.*(1, 2, 4, 8, 16)", "--heads", "3")

    def test_zero_heads(self):
        self.train(USAGE, r"heads", "--heads", "0")

    def test_key_value_heads_that_do_not_divide(self):
        self.train(USAGE, r"kv-heads must divide heads 8: 3 does not; these do: 1, 2, 4, 8", "--heads", "8",
                   "--kv-heads", "3")

    def test_more_key_value_heads_than_heads(self):
        self.train(USAGE, r"kv-heads must divide heads 2: 4 does not; these do: 1, 2", "--kv-heads", "4")

    def test_zero_key_value_heads(self):
        self.train(USAGE, r"kv-heads: must be a whole number from 1 to 4096, or heads, found '0'", "--kv-heads", "0")

    def test_rank_of_zero(self):
        self.train(USAGE, r"qk-rank: must be a whole number from 1 to 65536, or head-dim, found '0'", "--qk-rank", "0")

    def test_windows_that_are_none(self):
        for window in ("-1", "wide", "3,", "3,4,5", "3,-4", "2000000"):
            self.train(USAGE, r"window: must be off, or one or two whole numbers from 0 to 1048576 .*found '"
                       + re.escape(window) + "'", "--window=" + window)

    def test_attention_of_no_kind(self):
        self.train(USAGE, r"attention: must be one of fused, naive, per-head, found 'flash'", "--attention", "flash")

    def test_vary_key_value_heads_that_do_not_divide(self):
        out = self.folder / "c"
        self.expect(USAGE, r"kv-heads must divide heads 2: 3 does not", "compare", "--data", self.data, "--out", out,
                    "--vary", "kv-heads=2,3", *SMALL)
        self.assertFalse(list(out.rglob("result.json")))  # refused before the first run

    def test_vary_window_in_part_wrong(self):
        self.expect(USAGE, r"window.*found 'x'", "compare", "--data", self.data, "--out", self.folder / "c", "--vary",
                    "window=4,x", *SMALL)

    def test_negative_dim(self):
        self.train(USAGE, r"dim", "--dim=-4")

    def test_nan_learning_rate(self):
        self.train(USAGE, r"lr.*nan", "--lr", "nan")

    def test_negative_learning_rate(self):
        self.train(USAGE, r"lr", "--lr=-1")

    def test_a_word_for_a_number(self):
        self.train(USAGE, r"epochs.*many", "--epochs", "many")

    def test_batch_of_zero(self):
        self.train(USAGE, r"batch", "--batch", "0")

    def test_dropout_of_one(self):
        self.train(USAGE, r"dropout", "--dropout", "1")

    def test_threads_beyond_reason(self):
        self.train(USAGE, r"threads", "--threads", "100000")

    def test_unknown_choice(self):
        self.train(USAGE, r"pooling.*mean.*median", "--pooling", "median")

    def test_valid_share_of_two(self):
        self.train(USAGE, r"valid-share", "--valid-share", "2")

    def test_isa_that_does_not_exist(self):
        self.train(USAGE, r"HEADLIGHT_ISA.*mmx", env={"HEADLIGHT_ISA": "mmx"})

    def test_vary_of_no_flag(self):
        self.expect(USAGE, r"colour", "compare", "--data", self.data, "--out", self.folder / "c", "--vary",
                    "colour=1,2", *SMALL)

    def test_vary_without_values(self):
        self.expect(USAGE, r"--vary", "compare", "--data", self.data, "--out", self.folder / "c", "--vary", "heads",
                    *SMALL)

    def test_compare_where_another_comparison_is(self):
        out = self.folder / "c"
        compare = ("compare", "--data", self.data, "--out", out, *SMALL, "--no-baseline")
        self.assertEqual(run(*compare, "--heads", "2").returncode, 0)
        report = (out / "report.html").read_bytes()
        self.expect(USAGE, r"another comparison \(heads-2_seed-1 is not .*name another --out, or delete", *compare,
                    "--vary", "norm=pre,post")
        self.expect(USAGE, r"heads-2_seed-1: .*other choices of epochs \(1, now 2\); name another --out, or delete",
                    *compare, "--heads", "4,2", "--epochs", 2)
        self.assertEqual((out / "report.html").read_bytes(), report)
        self.assertEqual([path.parent.name for path in out.rglob("config.toml")], ["heads-2_seed-1"])
        self.assertEqual(run(*compare, "--heads", "4,2", "--seeds", 2).returncode, 0)  # a larger grid

    def test_seeds_beyond_the_largest(self):
        out = self.folder / "c"
        self.expect(USAGE, r"seed.*found '9000000000000002'", "compare", "--data", self.data, "--out", out, *SMALL,
                    "--heads", "1,2", "--seed", 9 * 10**15, "--seeds", 3)
        self.assertFalse(out.exists())

    def test_choices_without_what_they_are_of(self):
        self.train(USAGE, r"scale-value 5 needs scale given, found", "--scale-value", "5")
        self.train(USAGE, r"relative-distance needs relative positions .--positions.*found sinusoidal", "--relative-distance", "5")

    def test_flags_that_contradict_each_other(self):
        gold = self.folder / "g.jsonl"
        self.assertEqual(run("data", "make", "relations", "--count", 8, "--out", gold).returncode, 0)
        heads = ("heads", self.run_directory)
        self.expect(USAGE, r"--gold excludes --data", *heads, "--gold", gold, "--data", self.data)
        self.expect(USAGE, r"--shuffle-gold requires --gold", *heads, "--shuffle-gold", 3)
        for flag, value in (("--heads", 4), ("--data", self.data)):
            self.expect(USAGE, rf"choices of the run .*run are profiled, so {flag}", "profile", self.run_directory,
                        flag, value)
        self.expect(USAGE, r"--top", "profile", self.run_directory, "--top=-3")

    def test_out_that_is_empty(self):
        for command in ("train", "compare"):
            self.expect(USAGE, r"--out: must not be empty", command, "--data", self.data, "--out", "", *SMALL)

    def test_show_layer_out_of_range(self):
        self.expect(USAGE, r"layer.*7", "show", self.run_directory, "good word", "--layer", "7")

    def test_show_head_out_of_range(self):
        self.expect(USAGE, r"head.*9", "show", self.run_directory, "good word", "--head", "9")

    def test_show_into_a_file_of_no_known_kind(self):
        for name in ("a.gif", "a"):
            self.expect(USAGE, r"--out: .*ending must be one of .*png.*found '.*" + name, "show", self.run_directory,
                        "good", "--out", self.folder / name)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_show_of_a_run_without_layers(self):
        run_directory = self.folder / "plain"
        result = run("train", "--data", self.data, "--out", run_directory, *SMALL, "--layers", "0")
        self.assertEqual(result.returncode, 0, result.stderr)
        for kind in ("terminal", "png", "html", "csv"):
            self.expect(USAGE, r"show: the run has no layers .*--layers 0", "show", run_directory, "good", "--format",
                        kind)

    def test_bench_shapes_that_are_none(self):
        for shape, pattern in (("b1 nX d64", r'shape "b1 nX d64".*"nX" must be n<N>'),
                               ("n5 d8 casual", r'"casual" is none of its words.*causal'),
                               ("n5 d8 by=fused", r'"by=fused" must be by=naive\|per-head .*: naive or per-head$'),
                               ("n5 d8 causal=foo", r'"causal=foo" .*: end or start$'),
                               ("n5 d8 window=3", r'"window=3" .*: two whole numbers from 0 to 1048576$'),
                               ("n5 d8 dropout=1", r'"dropout=1" .*: a number above 0 and below 1$'),
                               ("n5 d8 keys=0", r'"keys=0" .*: a whole number from 1 to 1048576$'),
                               ("d64", r"n<N>.*missing"), ("h8 kv3 n5 d8", r"kv must divide h"),
                               ("b100000 h100 n100000 d64", r"GiB.*make b or n smaller")):
            self.expect(USAGE, pattern, "bench", "--shape", shape)

    def test_bench_counts_that_are_none(self):
        self.expect(USAGE, r"--threads", "bench", "--shape", "n5 d8", "--threads", "0")
        self.expect(USAGE, r"--threads.*two", "bench", "--shape", "n5 d8", "--threads", "1,two")
        self.expect(USAGE, r"--repeats", "bench", "--shape", "n5 d8", "--repeats", "0")
        self.expect(USAGE, r"--seconds", "bench", "--shape", "n5 d8", "--seconds=-1")
        self.expect(USAGE, r"--seconds: must be .*0 to 3600, found nan", "bench", "--shape", "n5 d8", "--seconds", "nan")

    def split(self, code, pattern, data, train, valid):
        before = {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        self.expect(code, pattern, "data", "split", data, "--train-out", train, "--valid-out", valid)
        self.assertEqual({path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}, before)

    def test_split_into_one_file(self):
        (self.folder / "below").mkdir()
        for valid in ("t.csv", "./t.csv", "below/../t.csv"):
            self.split(USAGE, r"--valid-out.*another file", self.data, self.folder / "t.csv",
                       f"{self.folder}/{valid}")
        result = subprocess.run([program.program, "data", "split", self.data, "--train-out", "t.csv", "--valid-out",
                                 "./t.csv"], cwd=self.folder, capture_output=True, timeout=60, check=False)
        self.assertEqual(result.returncode, USAGE, result.stderr)
        self.assertFalse((self.folder / "t.csv").exists())

    def test_split_over_what_is_read(self):
        data = self.folder / "d.csv"
        shutil.copy(self.data, data)
        (self.folder / "hard.csv").hardlink_to(data)
        for train, valid in (("d.csv", "v.csv"), ("t.csv", "d.csv"), ("hard.csv", "v.csv")):
            self.split(USAGE, r"-out: must lie outside of what is split", data, self.folder / train, self.folder / valid)
        self.split(USAGE, r"--train-out: must lie outside", self.folder, self.folder / "train.csv", self.shared / "v.csv")

    def test_split_into_files_of_no_known_kind(self):
        self.split(USAGE, r"--train-out.*\.csv or \.jsonl, found '.*t\.txt'", self.data, self.folder / "t.txt",
                   self.folder / "v.csv")
        self.split(USAGE, r"--valid-out.*\.csv or \.jsonl", self.data, self.folder / "t.csv", self.folder / "v")

    def test_split_whose_second_file_cannot_be_written(self):
        (self.folder / "t.csv").write_text("what was there")
        for train, valid in (("t.csv", "none/v.csv"), ("none/t.csv", "t.csv")):
            self.split(FAILED, r"none/", self.data, self.folder / train, self.folder / valid)

    def test_seeds_that_are_none(self):
        out = self.folder / "out"
        for arguments in (["data", "make", "relations", "--count", 4, "--out", out],
                          ["data", "split", self.data, "--train-out", f"{out}.csv", "--valid-out", f"{out}.jsonl"],
                          ["gradcheck"], ["train", "--data", self.data, "--out", out]):
            for seed in ("-1", "18446744073709551615", "99999999999999999999", "1.5", "x"):
                self.expect(USAGE, r"seed: must be a whole number from 0 to 9000000000000000, found '" + re.escape(seed) + "'",
                            *arguments, "--seed=" + seed)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_shuffle_gold_out_of_range(self):
        gold = self.folder / "gold.jsonl"
        self.ok("data", "make", "relations", "--count", 4, "--out", gold)
        for seed in ("-1", "18446744073709551615", "x"):
            self.expect(USAGE, r"headlight: --shuffle-gold: must be a whole number from 0 to 9000000000000000, found '"
                        + re.escape(seed) + "'", "heads", self.run_directory, "--gold", gold, "--shuffle-gold=" + seed)

    def test_make_counts_out_of_range(self):
        for count in ("-1", "1000001", "x"):
            self.expect(USAGE, r"headlight: .*--count.*" + count, "data", "make", "relations", "--count=" + count,
                        "--out", self.folder / "r.jsonl")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_make_in_no_such_language(self):
        self.expect(USAGE, r"language", "data", "make", "relations", "--language", "xx", "--count", "4", "--out",
                    self.folder / "r.jsonl")


class Data(Case):
    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def test_messages_show_what_a_file_holds(self):
        """Nothing in it acts on the terminal, ends the message or floods it."""
        def describe(label, shown):
            path = self.write("c.csv", b"text,label\n" + b"a,x\n" * 2000 + b"b," + label + b"\xff\n")
            result = self.expect(INPUT, r"c\.csv:2002: the label .*" + shown + ".*' is not UTF-8", "data", "describe",
                                 "--format", "csv", path)
            self.assertNotRegex(result.stderr, rb"[\0-\x09\x0b-\x1f\x7f]")
            return result.stderr.decode("utf-8")  # whole characters

        describe(b"red\x1b[31m\x7f\t\0after", "red␛\\[31m␡␉␀after")
        describe("\u009b2J \u202e".encode(), "\ufffd2J \ufffd")
        for filling in ("x", "长", "\x1b", "😀"):
            for shift in range(4):
                message = describe(b"y" * shift + (filling * 20000).encode(), "…")
                self.assertLess(len(message.encode()), 2050)

    def test_missing_file(self):
        self.train(INPUT, r"nowhere\.csv", data=self.folder / "nowhere.csv")

    def test_empty_file(self):
        self.train(INPUT, r"empty\.csv", data=self.write("empty.csv", ""))

    def test_folder_without_classes(self):
        (self.folder / "texts").mkdir()
        self.train(INPUT, r"texts", data=self.folder / "texts")

    def test_one_class_only(self):
        self.train(INPUT, r"(two|2).*(label|class)|(label|class).*(two|2)",
                   data=self.write("one.csv", "text,label\n" + "".join(f"word {i},pos\n" for i in range(20))))

    def test_texts_that_are_empty(self):
        none = self.write("none.csv", "text,label\n" + ",pos\n,neg\n" * 20)
        self.expect(INPUT, r"none\.csv: no row can be used; 40 are skipped", "eval", self.run_directory, "--data", none,
                    "--json")
        self.train(INPUT, r"split: 0 rows.*40 more rows are skipped", data=none)
        half = self.write("half.csv", "text,label\n" + "".join(f",pos\nbad {i},neg\n" for i in range(20)))
        self.train(INPUT, r"two labels, found 1 \('neg'\); 20 more rows are skipped, for their text", data=half)

    def test_label_column_missing(self):
        self.train(INPUT, r"data\.csv.*stars", "--label-column", "stars")

    def test_column_names_that_occur_twice(self):
        path = self.write("t.tsv", "text\tlabel\tlabel\n" + "".join(f"word {i}\ta\t{i % 2}\n" for i in range(20)))
        self.train(INPUT, r"t\.tsv:1: .*label column.*once.*'label' in columns 2 and 3; rename.*number", data=path)
        self.ok("data", "describe", path, "--label-column", "3")

    def test_label_field_missing(self):
        path = self.write("a.jsonl", "".join(json.dumps({"text": f"t {i}"}) + "\n" for i in range(9)))
        self.train(INPUT, r"a\.jsonl", "--label-field", "label", data=path)

    def test_quotes_that_do_not_close(self):
        rows = "".join(f"word {i},{'a' if i % 2 else 'b'}\n" for i in range(20))
        self.train(INPUT, r"q\.csv:22", data=self.write("q.csv", "text,label\n" + rows + '"never closed,a\n'))

    def test_broken_json_line(self):
        lines = [json.dumps({"text": f"word {i}", "label": str(i % 2)}) for i in range(10)]
        lines[6] = '{"text": "word'
        self.train(INPUT, r"b\.jsonl:7", data=self.write("b.jsonl", "\n".join(lines) + "\n"))

    def test_json_line_that_ends_early(self):
        path = self.write("c.jsonl", '{"text":"a","label":"x"}\n{"text":"b"\n')
        result = self.expect(INPUT, r"c\.jsonl:2: column 12: the line ends before its object does", "data", "describe",
                             path)
        self.assertNotIn(b"exception", result.stderr)

    def test_file_name_that_is_not_utf8(self):
        path = os.fsencode(self.folder) + b"/x\xff\xfe.csv"
        with open(path, "wb") as file:
            file.write(b"text,label\n,a\n" + self.data.read_bytes().split(b"\n", 1)[1])
        result = subprocess.run([program.program, "data", "describe", path, "--json"], capture_output=True, check=False,
                                timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("x\ufffd\ufffd.csv", str(json.loads(result.stdout)["defects"]))

    def test_compressed_file_that_is_no_archive(self):
        path = self.write("a.csv.gz", gzip.compress(self.data.read_bytes()))
        self.expect(INPUT, r"a\.csv\.gz: .*neither a tar nor a zip.*gunzip", "data", "describe", path)

    def test_broken_utf8_is_counted_and_trains(self):
        path = self.write("u.csv", b"text,label\n" + b"".join(
            b"bad \xff\xfe word %d,%s\n" % (i, b"a" if i % 2 else b"b") for i in range(20)))
        result = run("data", "describe", path, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        defects = {d["name"]: d["count"] for d in json.loads(result.stdout)["defects"]}
        self.assertEqual(defects["broken UTF-8"], 20)
        self.assertEqual(run("train", "--data", path, "--out", self.folder / "u", *SMALL).returncode, 0)

    def test_binary_file(self):
        self.train(INPUT, r"z\.bin", data=self.write("z.bin", os.urandom(5000).replace(b"\n", b"x")))

    def test_utf32_of_a_named_format(self):
        for encoding in ("utf-32-le", "utf-32-be"):
            path = self.write("u.csv", ("\ufeff" + self.data.read_text()).encode(encoding))
            for name in ("auto", "csv", "tsv", "jsonl", "label-text", "text-label"):
                self.train(INPUT, r"u\.csv is UTF-32; convert it to UTF-8", "--format", name, data=path)

    def test_link_to_itself(self):
        loop = self.folder / "loop.csv"
        loop.symlink_to(loop)
        self.train(INPUT, r"read .*loop\.csv: ", data=loop)

    def test_archive_in_an_archive(self):
        inner = archive_of(self.data, self.folder / "train.tar.gz", "gz")
        outer = archive_of(inner, self.folder / "out.tar")
        self.train(INPUT, r"out\.tar:train\.tar\.gz is an archive .*unpack it first", data=outer)

    def test_archive_that_lacks_its_last_bytes(self):
        for compression, missing in (("gz", 1), ("xz", 20)):
            archive = archive_of(self.data, self.folder / "t.tar", compression)
            archive.write_bytes(archive.read_bytes()[:-missing])
            self.train(INPUT, r"t\.tar: .*damaged or ends early", data=archive)

    def test_truncated_archive(self):
        archive = self.folder / "t.tar.gz"
        source = self.folder / "src"
        for label in ("pos", "neg"):
            (source / label).mkdir(parents=True)
            for i in range(20):
                (source / label / f"{i}.txt").write_bytes(os.urandom(300).hex().encode())
        archive_of(source, archive, "gz", name=".")
        archive.write_bytes(archive.read_bytes()[:2000])
        self.train(INPUT, r"t\.tar\.gz", data=archive)

    def test_valid_with_a_label_that_train_lacks(self):
        self.train(INPUT, r"(other|label)", "--valid", self.write("v.csv", "text,label\nword,other\nword2,pos\n"))

    def test_data_that_changed_since_the_run(self):
        data = self.write("d.csv", self.data.read_text())
        compare = ("compare", "--data", data, "--out", self.folder / "c", *SMALL, "--no-baseline")
        self.assertEqual(run(*compare, "--heads", "1,2").returncode, 0)
        heads = ("heads", self.folder / "c" / "heads-2_seed-1")
        self.assertEqual(run(*heads).returncode, 0)
        data.write_text(data.read_text() + "good awful,pos\n" * 20)
        self.expect(INPUT, r"heads-1_seed-1: the data are not those that the run began on.*--out.*delete", *compare,
                    "--heads", "1,2,4")
        self.expect(INPUT, r"heads-2_seed-1: the data are not those .*--data", *heads)
        self.assertEqual(run(*heads, "--data", data).returncode, 0)

    def test_data_that_moved_since_the_run(self):
        data = self.write("d.csv", self.data.read_text())
        self.assertEqual(run("train", "--data", data, "--out", self.folder / "r", *SMALL).returncode, 0)
        data.unlink()
        self.expect(INPUT, r"d\.csv.*r/config\.toml.*--data", "heads", self.folder / "r")
        self.expect(INPUT, r"d\.csv.*r/config\.toml", "profile", self.folder / "r", "--profile-steps", 1)

    def test_gold_file_that_is_empty(self):
        self.expect(INPUT, r"g\.jsonl: is empty", "heads", self.run_directory, "--gold", self.write("g.jsonl", "\n"))

    def test_gold_file_that_is_none(self):
        self.expect(INPUT, r"g\.jsonl:1", "heads", self.run_directory, "--gold", self.write("g.jsonl", "{}\n"))

    def test_bench_lists_that_are_none(self):
        self.expect(INPUT, r"shapes\.txt:2: .*nope", "bench", self.write("shapes.txt", "n5 d8\nn5 d8 nope\n"))
        self.expect(INPUT, r"empty\.txt: holds no shape", "bench", self.write("empty.txt", "# nothing\n"))
        self.expect(INPUT, r"nowhere.*built-in lists: .*dense", "bench", "nowhere")
        self.expect(INPUT, r"z\.txt", "bench", self.write("z.txt", os.urandom(2 << 20)))


    def test_lines_that_cannot_be_read(self):
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            result = subprocess.run([program.program, "predict", self.run_directory], stdin=folder, capture_output=True,
                                    timeout=60, check=False)
        finally:
            os.close(folder)
        self.assertEqual(result.returncode, INPUT, result.stderr)
        self.assertIn(b"read standard input: Is a directory", result.stderr)
        self.expect(INPUT, "read : No such file", "predict", self.run_directory, "--file", "")


class Disk(Case):
    def test_run_directory_below_a_file(self):
        (self.folder / "file").write_text("x")
        self.expect(FAILED, r"file/run", "train", "--data", self.data, "--out", self.folder / "file" / "run", *SMALL)

    def test_a_folder_that_does_not_exist(self):
        for arguments in (["show", self.run_directory, "good word", "--format", "png", "--out"],
                          ["data", "make", "relations", "--count", 4, "--out"]):
            self.expect(FAILED, r"write .*none/x\.png: No such file or directory", *arguments,
                        self.folder / "none" / "x.png")

    def test_run_directory_that_holds_something_else(self):
        (self.folder / "mine").mkdir()
        (self.folder / "mine" / "thesis.txt").write_text("do not touch")
        result = run("train", "--data", self.data, "--out", self.folder / "mine", *SMALL)
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual((self.folder / "mine" / "thesis.txt").read_text(), "do not touch")

    def test_standard_output_that_takes_nothing(self):
        lines = self.folder / "lines.txt"
        lines.write_text("good\nbad\n")
        for arguments in (["runs", self.shared, "--json"], ["predict", self.run_directory, "good word"],
                          ["predict", self.run_directory, "good word", "--json"],
                          ["predict", self.run_directory, "--file", lines], ["data", "describe", self.data], ["--help"],
                          ["train", "--help"], ["--version"], []):
            for redirection in (">/dev/full", ">&-"):
                result = subprocess.run(["bash", "-c", f'exec "$@" {redirection}', "-", program.program,
                                         *map(str, arguments)], capture_output=True, timeout=60, check=False)
                self.assertEqual(result.returncode, FAILED, (arguments, redirection, result.stderr))
                self.assertEqual(result.stderr, b"headlight: standard output could not be written\n")

    def test_what_is_said_goes_into_no_file(self):
        """Where nothing stands at the standard descriptors they are free for the next files that are opened."""
        out = self.folder / "out"
        result = subprocess.run(["bash", "-c", 'exec "$@" <&- >&- 2>&-', "-", program.program, "train", "--data",
                                 self.data, "--out", out, *SMALL], timeout=60, check=False)
        self.assertEqual(result.returncode, FAILED)
        for line in (out / "metrics.jsonl").read_text().splitlines():
            json.loads(line)

    def test_messages_that_nobody_takes(self):
        result = subprocess.run(["bash", "-c", 'exec "$@" 2>/dev/full', "-", program.program, "predict", "nothing", "x"],
                                timeout=60, check=False)
        self.assertEqual(result.returncode, INPUT)

    def test_full_disk(self):
        """A file-size limit stands for the full disk: every write beyond 20 kB fails."""
        result = subprocess.run(
            ["bash", "-c", 'trap "" XFSZ; ulimit -f 20; exec "$@"', "-", program.program, "train", "--data", self.data, "--out",
             self.folder / "full", *SMALL], capture_output=True, timeout=60, check=False)
        self.assertEqual(result.returncode, FAILED, result.stderr)
        self.assertRegex(result.stderr.decode(), r"full/")
        leftovers = [p for p in (self.folder / "full").rglob("*") if ".tmp" in p.name]
        self.assertEqual(leftovers, [])


class Checkpoints(Case):
    def predict(self, run_directory, pattern):
        self.expect(INPUT, pattern, "predict", run_directory, "good word")

    def test_run_that_does_not_exist(self):
        self.predict(self.folder / "nothing", r"nothing")

    def test_truncated(self):
        directory = self.copy_run()
        path = self.checkpoint(directory)
        path.write_bytes(path.read_bytes()[:-100])
        self.predict(directory, path.name)

    def test_of_another_shape(self):
        directory = self.copy_run()
        config = directory / "config.toml"
        config.write_text(re.sub(r"(?m)^(dim\s*=\s*)16$", r"\g<1>32", config.read_text()))
        self.predict(directory, r"best\.safetensors.*config\.toml")

    def test_of_other_key_value_heads_and_ranks(self):
        for key, value in (("kv_heads", "1"), ("qk_rank", "3")):
            directory = self.folder / key
            shutil.copytree(self.run_directory, directory)
            config = directory / "config.toml"
            text = re.sub(rf"(?m)^{key}\s*=.*$", f"{key} = {value}", config.read_text())
            self.assertIn(f"{key} = {value}\n", text)
            config.write_text(text)
            self.predict(directory, r"best\.safetensors: tensor encoder\.0\.attention\.\w+\.weight must be f32 .*found")

    def test_resumed_with_another_attention(self):
        for flags in (["--attention", "naive"], ["--window", "3"], ["--kv-heads", "1"]):
            self.expect(USAGE, flags[0][2:], "train", "--data", self.data, "--out", self.run_directory, "--resume",
                        *SMALL, *flags)

    def test_resumed_without_its_best_model(self):
        directory = self.copy_run()
        (directory / "result.json").unlink()
        self.checkpoint(directory).unlink()
        train = ("train", "--data", self.data, "--out", directory, *SMALL)
        self.expect(INPUT, r"run/checkpoints/best\.safetensors, .*is missing.*--replace", *train, "--resume")
        self.assertFalse((directory / "result.json").exists())
        self.assertEqual(run(*train, "--replace").returncode, 0)

    def test_of_another_run(self):
        directory = self.copy_run()
        config, text = directory / "config.toml", directory / "text.json"
        before = config.read_text()
        for key, old, new in (("heads", "2", "4"), ("activation", "'relu'", "'gelu'")):
            config.write_text(before.replace(f"\n{key} = {old}\n", f"\n{key} = {new}\n"))
            self.assertNotEqual(config.read_text(), before)
            self.predict(directory, rf"best\.safetensors: was saved with {key} .*config\.toml .*belong together")
        config.write_text(before.replace("attention = 'fused'", "attention = 'naive'"))  # the same weights
        self.assertEqual(run("predict", directory, "good word").returncode, 0)
        text.write_text(text.read_text().replace('"pos"', '"?"').replace('"neg"', '"pos"').replace('"?"', '"neg"'))
        self.predict(directory, r"best\.safetensors: was saved with other .*text\.json .*belong together")

    def test_header_length_beyond_the_file(self):
        directory = self.copy_run()
        path = self.checkpoint(directory)
        path.write_bytes(struct.pack("<Q", 1 << 62) + path.read_bytes()[8:])
        self.predict(directory, path.name)

    def test_header_with_offsets_outside(self):
        directory = self.copy_run()
        path = self.checkpoint(directory)
        header = json.dumps({"classifier.bias": {"dtype": "F32", "shape": [2], "data_offsets": [0, 1 << 40]}}).encode()
        path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 8)
        self.predict(directory, path.name)

    def test_header_nested_without_end(self):
        directory = self.copy_run()
        path = self.checkpoint(directory)
        header = b'{"a":' * 100000
        path.write_bytes(struct.pack("<Q", len(header)) + header)
        self.predict(directory, path.name)

    def test_text_json_that_lies(self):
        directory = self.copy_run()
        (directory / "text.json").write_text('{"format_version": 1, "vocabulary": 7}')
        self.predict(directory, r"text\.json")

    def test_config_of_a_later_version(self):
        directory = self.copy_run()
        config = directory / "config.toml"
        config.write_text(re.sub(r"format_version\s*=\s*\d+", "format_version = 999", config.read_text()))
        self.predict(directory, r"config\.toml.*999")

    def test_config_whose_choices_do_not_fit(self):
        directory = self.copy_run()
        config = directory / "config.toml"
        config.write_text(re.sub(r"(?m)^heads = 2$", "heads = 3", config.read_text()))
        for command in (("predict", "good"), ("eval", "--data", self.data), ("heads",), ("show", "good"), ("profile",)):
            self.expect(INPUT, r"run/config\.toml: model: heads must divide dim 16", command[0], directory, *command[1:])

    def test_config_that_is_no_toml(self):
        directory = self.copy_run()
        (directory / "config.toml").write_text("dim = = 3\n")
        self.predict(directory, r"config\.toml")


class Kept(Case):
    """What a person put where a run or a report was expected stays as it is."""

    def test_comparison_over_its_own_data(self):
        folder = self.folder / "mine"
        folder.mkdir()
        data = folder / "report.csv"
        shutil.copy(self.data, data)
        before = data.read_bytes()
        self.expect(USAGE, r"mine: its report could replace .*report\.csv; name another --out", "compare", "--data", data,
                    "--out", folder, *SMALL)
        self.assertEqual(data.read_bytes(), before)

    def test_comparison_in_a_foreign_folder(self):
        (self.folder / "report.md").write_text("thesis")
        self.expect(USAGE, r"holds other files and no comparison; name a new directory", "compare", "--data", self.data,
                    "--out", self.folder, *SMALL)
        self.assertEqual((self.folder / "report.md").read_text(), "thesis")

    def test_replace_of_a_foreign_folder(self):
        folder = self.folder / "site"
        folder.mkdir()
        (folder / "config.toml").write_text("title = 'my site'\n")
        self.expect(USAGE, r"site: its config\.toml is not that of a run; name a new directory", "train", "--data", self.data,
                    "--out", folder, "--replace", *SMALL)
        self.assertEqual((folder / "config.toml").read_text(), "title = 'my site'\n")
        self.assertEqual([path.name for path in folder.iterdir()], ["config.toml"])

    def test_replace_of_what_only_looks_like_a_run(self):
        folder = self.folder / "site"
        folder.mkdir()
        for text in ("[a]\nformat_version = 2\n", "format_version is not\nformat_version\n"):
            (folder / "config.toml").write_text(text)
            self.expect(USAGE, r"site: its config\.toml is not that of a run", "train", "--data", self.data, "--out", folder,
                        "--replace", *SMALL)
            self.assertEqual((folder / "config.toml").read_text(), text)

    def test_pipe_in_the_place_of_a_config(self):
        folder = self.copy_run()
        (folder / "config.toml").unlink()
        os.mkfifo(folder / "config.toml")
        self.expect(INPUT, r"config\.toml: it must be a regular file", "predict", folder, "text")
        self.expect(USAGE, r"its config\.toml is not that of a run", "train", "--data", self.data, "--out", folder,
                    "--replace", *SMALL)

    def test_pipe_in_the_place_of_a_text_encoder(self):
        folder = self.copy_run()
        (folder / "result.json").unlink()
        (folder / "text.json").unlink()
        os.mkfifo(folder / "text.json")
        self.expect(INPUT, r"text\.json must be a regular file", "train", "--data", self.data, "--out", folder, "--resume",
                    *SMALL, timeout=10)

    def test_comparison_where_a_foreign_report_lies_beside_runs(self):
        for beside in ("site", "run", "heads-2_seed-1"):
            folder = self.folder / ("beside-" + beside)
            folder.mkdir()
            (folder / "report.md").write_text("thesis")
            if beside == "run":
                shutil.copytree(self.run_directory, folder / beside)
            else:
                (folder / beside).mkdir()
            if beside == "site":
                (folder / beside / "config.toml").write_text("title = 'my site'\n")
            self.expect(USAGE, r"holds other files and no comparison", "compare", "--data", self.data, "--out", folder, *SMALL)
            self.assertEqual((folder / "report.md").read_text(), "thesis")

    def test_replace_of_the_run_that_holds_the_data(self):
        folder = self.copy_run()
        data = folder / "metrics.jsonl"
        shutil.copy(self.data, data)
        self.expect(USAGE, r"run: holds .*metrics\.jsonl, which replacing could delete", "train", "--data", data,
                    "--format", "csv", "--out", folder, "--replace", *SMALL)
        self.assertTrue(data.exists())

    def test_replace_of_the_folder_that_is_the_data(self):
        folder = self.copy_run()
        for name in ("neg", "pos"):
            (folder / name).mkdir()
            for i in range(4):
                (folder / name / f"{i}.txt").write_text(f"{name} text {i}")
        self.expect(USAGE, r"run: holds .*run, which replacing could delete", "train", "--data", folder, "--out", folder,
                    "--replace", *SMALL)
        self.assertTrue((folder / "result.json").exists())

    def test_result_that_lies(self):
        folder = self.copy_run()
        true = json.loads((folder / "result.json").read_text())
        for change, message in (
                ({"valid": {"confusion": []}}, "'confusion' must have 2 rows, one for each label, found 0"),
                ({"valid": {"confusion": [[2**62, 2**62], [2**62, 2**62]]}}, "'confusion' must be a square table"),
                ({"valid": {"macro_f1": -9}}, "'macro_f1' must be 0 to 1, found -9"),
                ({"labels": []}, "'labels' must hold two or more")):
            result = dict(true)
            for key, value in change.items():
                result[key] = {**true[key], **value} if isinstance(value, dict) else value
            (folder / "result.json").write_text(json.dumps(result))
            listed = run("runs", folder)
            self.assertIn(message, (listed.stdout + listed.stderr).decode())


if __name__ == "__main__":
    program.main()
