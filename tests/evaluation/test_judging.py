"""Several suites in one call, run folders, verdicts between models, and what every score carries."""

from __future__ import annotations

import gzip
import json
import logging
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.cli import main
from isotrope.data.compared_words import words_of
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.judged_models import find_models
from isotrope.evaluation.sts import TASKS
from isotrope.evaluation.suite import Options, find_suite, registry
from isotrope.evaluation.suite_runs import plan_suites
from isotrope.evaluation.task_records import first_numbers
from isotrope.evaluation.transfer import TASKS as TRANSFER

pytestmark = pytest.mark.filterwarnings("ignore:Training did not improve")
CARRIED = ("suite", "task", "metric", "score", "protocol", "version", "aggregation", "pooling", "items", "seeds")
FILES = {"sts", "layers", "transfer", "retrieval", "answers", "geometry", "counterfactual"}


def write(path: Path, header: str, rows: list[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> Path:
    """A small data folder with the files of every suite that was there when this was written."""
    folder = tmp_path_factory.mktemp("data")
    for number, name in enumerate((*TASKS.values(), "stsb.dev")):
        first = topics[40 * number : 40 * number + 40]
        rows = [f"a\t{text}\t{first[(row * 7) % 40]}\t{row % 6}" for row, text in enumerate(first)]
        write(folder / "sts" / f"{name}.tsv", "subset\tsentence1\tsentence2\tscore", rows)
    for number, (task, parts) in enumerate(TRANSFER.items()):
        for names in parts:
            texts = topics[60 * number : 60 * number + 60]
            rows = [
                f"{row // 8 % 2}\t{text}" + f"\t{texts[row - 1]}" * (task == "MRPC") for row, text in enumerate(texts)
            ]
            header = "label\tsentence1\tsentence2" if task == "MRPC" else "label\tsentence"
            write(folder / "transfer" / f"{names[-1]}.tsv", header, rows)
    write(folder / "transfer" / "mr.tsv", "label\tsentence", [f"{n % 2}\tbig boats go quickly {n}" for n in range(60)])
    retrieval = folder / "retrieval"
    write(retrieval / "small.corpus.tsv", "doc_id\ttitle\ttext", [f"d{n}\t\t{topics[n]}" for n in range(30)])
    write(retrieval / "small.queries.tsv", "query_id\ttext", [f"q{n}\t{topics[n][:30]}" for n in range(10)])
    write(retrieval / "small.qrels.tsv", "query_id\tdoc_id\tscore", [f"q{n}\td{n}\t1" for n in range(10)])
    answers = [f"{n % 4 == 0:d}\tquestion {n // 4}\t{topics[n]}" for n in range(40)]
    write(retrieval / "wikiqa.test.tsv", "label\tquestion\tanswer_sentence", answers)
    labels = ("entailment", "contradiction", "neutral")
    (folder / "nli").mkdir()
    for part in ("train", "dev", "test"):
        pairs = [f"{labels[n % 3]}\ta man sleeps {n // 3}\ta person rests {n}" for n in range(24)]
        with gzip.open(folder / "nli" / f"cad_snli.{part}.tsv.gz", "wt", encoding="utf-8") as file:
            file.write("\n".join(["label\tpremise\thypothesis", *pairs]) + "\n")
    with gzip.open(folder / "transfer" / "mr.tsv.gz", "wt", encoding="utf-8") as file:
        file.write((folder / "transfer" / "mr.tsv").read_text(encoding="utf-8"))
    return folder


@pytest.fixture(scope="module")
def runs(tiny: Path, data: Path, topics: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two runs that differ in their seed; their text holds sentences of STS12 and a near copy of one."""
    folder = tmp_path_factory.mktemp("runs")
    text = folder / "text.txt"
    near = topics[2].replace("salt", "pepper")
    other = [f"{a} {b} are seldom seen together" for a in "abcdefghij" for b in "klmnopqrst"]
    text.write_text("\n".join([*other, topics[0].upper() + "!", topics[1], near]) + "\n", encoding="utf-8")
    settings = {"max_steps": 2, "batch_size": 16, "eval_steps": 2, "held_out": 40}
    for seed in (1, 2):
        isotrope.train("simcse", text, model=tiny, output=folder / "group" / f"seed-{seed}", seed=seed, **settings)
    return folder


@pytest.fixture(scope="module")
def everything(tiny: Path, data: Path):
    return isotrope.evaluate(tiny, "all", data)


def numbers(scores: dict[str, Any], place: str = "") -> dict[str, float]:
    """All numbers of nested scores by their place."""
    found: dict[str, float] = {}
    for name, value in scores.items():
        inside = numbers(value, f"{place}{name}.") if isinstance(value, dict) else {f"{place}{name}": value}
        found |= {key: one for key, one in inside.items() if isinstance(one, int | float)}
    return found


def test_all_is_everything_the_folder_has(everything, tiny: Path, data: Path) -> None:
    assert set(everything.scores) >= FILES
    assert "linear" in everything.protocol["left out"]  # it needs text of one's own
    assert "needs labelled text" in everything.table()
    sts = isotrope.evaluate(tiny, "sts", data)
    assert numbers(everything.scores["sts"]) == pytest.approx(numbers(sts.scores["sts"]), rel=1e-9)  # threads sum apart
    assert everything.protocol["sts"] == sts.protocol
    assert sts.protocol["protocol"] == "sts-cosine-v1"


def test_every_score_carries_what_it_hangs_on(everything, tiny: Path, data: Path, topics: list[str], tmp_path: Path):
    everything.to_json(tmp_path / "all.json")
    found = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    labelled = [(text, str(number // 8 % 2)) for number, text in enumerate(topics[:80])]
    linear = isotrope.evaluate(tiny, "linear", texts=labelled).to_dict()  # type: ignore[arg-type]
    tasks = [*found["tasks"], *linear["tasks"]]
    ran = {name for name in registry() if name in everything.scores} | {"linear"}
    assert {task["suite"] for task in tasks} == ran
    for task in tasks:
        assert all(name in task for name in CARRIED), task
        assert np.isfinite(task["score"]), task
        assert task["seeds"] == [0]
        assert task["protocol"] == registry()[task["suite"]].card.protocol
        assert task["items"] is None or task["items"] > 0
    by_name = {(task["suite"], task["task"]): task for task in tasks}
    assert by_name["sts", "STS-B"]["metric"] == "spearman"
    assert by_name["sts", "STS-B"]["items"] == 40
    assert by_name["transfer", "MR"]["metric"] == "accuracy"
    assert by_name["retrieval", "small"]["metric"] == "ndcg_10"
    assert by_name["retrieval", "small"]["items"] == 10
    assert by_name["linear", "knn"]["metric"] == "top_1"
    assert by_name["answers", "answers"]["metric"] == "map"


def test_the_main_measure_is_the_first_number_of_a_task() -> None:
    nested = {"a": {"count": 3, "map": {"value": 1.5, "low": 0.5}}, "b": {"x": {"y": 2.0}}, "size": 4.0, "c": {"n": 1}}
    assert first_numbers(nested) == {"a": ("map", 1.5), "b": ("y", 2.0)}
    assert first_numbers({"correlation": 0.5, "pairs": 3}) == {"correlation": ("correlation", 0.5)}


def test_each_text_is_encoded_once_whatever_the_number_of_suites(
    tiny: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path))
    encoded: list[str] = []
    plain = Encoder.encode

    def counted(self, texts, *given, **named):  # type: ignore[no-untyped-def]
        encoded.extend(texts)
        return plain(self, texts, *given, **named)

    monkeypatch.setattr(Encoder, "encode", counted)
    first = isotrope.evaluate(tiny, ["sts", "transfer", "retrieval", "answers"], data)
    assert len(encoded) == len(set(encoded)) == first.cost["texts encoded"]
    assert isotrope.evaluate(tiny, "transfer,sts,retrieval,answers", data).scores == first.scores
    assert len(encoded) == first.cost["texts encoded"]


def test_time_and_memory_are_in_the_result(everything) -> None:
    assert everything.cost["seconds"] > 0
    assert everything.cost["peak memory (MB)"] > 50
    assert everything.cost["suites"]["sts"]["seconds"] <= everything.cost["seconds"]
    assert "seconds" in everything.table()
    assert everything.to_dict()["cost"] == everything.cost


@pytest.mark.parametrize(
    ("suite", "given", "said"),
    [
        ("sts,stss", {}, "Unknown suite 'stss'; did you mean 'sts'"),
        ("", {}, "No suite given; choose"),
        ("sts,", {}, "No suite given; choose"),
        ([], {}, "No suite given; choose"),
        ("sts,transfer", {"texts": ["a", "b"]}, "None of the suites takes texts: sts, transfer"),
        ("sts,transfer", {"aggregation": "sum"}, "Unknown aggregation 'sum'"),
        ("sts,probe", {"data_dir": "."}, "Unknown suite 'probe'"),
    ],
)
def test_what_cannot_work_is_refused(suite, given, said, data: Path) -> None:
    with pytest.raises(InputError, match=said):
        isotrope.evaluate("no/such/model", suite, **{"data_dir": data, **given})


def test_all_of_an_empty_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No suite can run"):
        isotrope.evaluate("no/such/model", "all", tmp_path)


def test_an_option_goes_to_the_suites_that_take_it(data: Path) -> None:
    planned, _ = plan_suites("sts,transfer", Options(data, aggregation="mean"))
    assert [one.options.aggregation for one in planned] == ["mean", "all"]
    planned, left_out = plan_suites("all", Options(data, aggregation="mean"))
    assert {one.name for one in planned} >= FILES
    assert not left_out.keys() & FILES


def test_a_model_against_another(tiny: Path, data: Path) -> None:
    found = isotrope.evaluate(tiny, "sts,geometry", data, against=[isotrope.load(tiny, pooling="cls"), tiny])
    first, itself = found.verdicts
    assert (first.suite, first.model, first.against) == ("sts", "tiny", "encoder 2")
    assert list(first.to_dict()["tasks"]) == list(TASKS)
    assert first.tasks[0].score == pytest.approx(found.scores["sts"]["STS12"]["spearman"])
    assert first.average.score == pytest.approx(found.scores["sts"]["average"]["spearman"])
    assert itself.sentence.startswith(
        "No difference between tiny and tiny (2) can be shown on 7 STS tasks (average +0.0"
    )
    assert itself.sentence in found.table()
    assert found.to_dict()["verdicts"][1]["sentence"] == itself.sentence
    assert "random seeds of the training" in itself.remarks[0]


def test_means_of_subsets_say_that_the_verdict_is_by_all(tiny: Path, data: Path) -> None:
    found = isotrope.evaluate(tiny, "sts", data, aggregation="wmean", against=tiny)
    assert "by aggregation all, not wmean" in found.verdicts[0].remarks[0]
    assert found.protocol["items"] == "of aggregation all: verdicts are taken by it"


def test_a_suite_without_items_refuses_to_decide_before_it_looks_for_a_model(topics: list[str]) -> None:
    with pytest.raises(InputError, match="geometry: no verdict can be taken"):
        isotrope.evaluate("no/such/model", "geometry", texts=topics[:30], against="nor/this")


def test_counterfactual_and_mteb_refuse_to_decide_before_hours_of_work(data: Path) -> None:
    with pytest.raises(InputError, match="counterfactual: no verdict can be taken"):
        isotrope.evaluate("no/such/model", "counterfactual", data, against="nor/this")
    assert not find_suite("mteb:STSBenchmark").card.has_items


def test_every_suite_says_whether_it_has_items(everything, tiny: Path, topics: list[str]) -> None:
    rows = [(text, str(row // 8 % 2)) for row, text in enumerate(topics[:80])]
    (verdict,) = isotrope.evaluate(tiny, "linear", texts=rows, against=tiny, leaks=False).verdicts
    assert verdict.suite == "linear"
    without = {name for name, suite in registry().items() if not suite.card.has_items}
    assert without == {"counterfactual", "geometry", "layers"}
    judged = {key.split("/")[0] for key in everything.items}
    assert judged == {name for name in everything.scores if name not in without}


def test_a_reason_that_several_suites_share_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ISOTROPE_DATA", raising=False)
    with pytest.raises(InputError, match=r"No suite can run\.") as refused:
        isotrope.evaluate("builtin", "all")
    assert str(refused.value).count("Evaluation data is needed") == 1
    assert "bitext, clustering" in str(refused.value)


def test_text_of_your_own_belongs_to_the_other_suites_where_there_are_several(
    tiny: Path, data: Path, topics: list[str]
) -> None:
    both = isotrope.evaluate(tiny, "sts,geometry", data, texts=topics[:30], leaks=False)
    assert {"STS12", "SICK-R"} <= set(both.scores["sts"])


def test_runs_of_several_seeds_stand_for_one_model(runs: Path, tiny: Path, data: Path) -> None:
    group = runs / "group"
    found = isotrope.evaluate(group, "sts", data, against=tiny, leaks=False)
    (verdict,) = found.verdicts
    assert (verdict.model, verdict.runs) == ("group", (2, 1))
    assert "2 against 1 runs" in verdict.sentence
    assert list(found.scores) == ["seed-1", "seed-2"]
    one = isotrope.evaluate(group / "seed-1", "sts", data, leaks=False)  # a run folder is its model
    assert one.scores == found.scores["seed-1"]
    mean = np.mean([found.scores[run]["sts"]["STS-B"]["spearman"] for run in found.scores])
    assert {task.task: task.score for task in verdict.tasks}["STS-B"] == pytest.approx(mean)
    joined = isotrope.evaluate(f"{group / 'seed-1'},{group / 'seed-2'}", "sts", data, against=tiny, leaks=False)
    assert joined.verdicts[0].tasks == verdict.tasks
    assert joined.verdicts[0].model == "simcse"
    listed = isotrope.evaluate(tiny, "sts", data, against=[[group / "seed-1", group / "seed-2"]])
    assert listed.verdicts[0].runs == (1, 2)


def test_runs_in_folders_of_one_name_keep_their_scores(runs: Path, tmp_path: Path, data: Path) -> None:
    places = [tmp_path / name / "run" for name in ("a", "b")]
    for seed, place in enumerate(places, 1):
        shutil.copytree(runs / "group" / f"seed-{seed}", place)
    found = isotrope.evaluate(places, "sts", data, leaks=False)
    assert list(found.scores) == list(found.protocol) == ["run", "run (2)"]
    alone = isotrope.evaluate(places[1], "sts", data, leaks=False)
    assert found.scores["run (2)"] == alone.scores
    assert {task["run"] for task in found.tasks} == {"run", "run (2)"}


def test_what_is_no_group_of_runs_is_refused(runs: Path, tmp_path: Path, tiny: Path, data: Path) -> None:
    with pytest.raises(InputError, match="no such model folder"):
        find_models([tiny, "./nowhere"])
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="no model yet"):
        find_models([tmp_path / "half"])
    with pytest.raises(InputError, match="No run was given"):
        find_models([[]])
    other = tmp_path / "other"
    other.mkdir()
    for name, method in (("a", "simcse"), ("b", "simclr")):
        (other / name / "model").mkdir(parents=True)
        (other / name / "run.json").write_text(json.dumps({"method": method}), encoding="utf-8")
    with pytest.raises(InputError, match="the methods simclr, simcse cannot stand for one model"):
        find_models([other])
    same = {"method": "simcse", "settings": {"seed": 1}, "model": {"name": "builtin"}, "data": {"fingerprint": "one"}}
    for changed, said in (
        ({"data": {"fingerprint": "two"}}, "runs of different texts cannot stand for one model"),
        ({"eval_content": ["a digest"]}, "runs of settings that differ in more than the seed"),
    ):
        for name, facts in (("a", same), ("b", {**same, "settings": {"seed": 2}, **changed})):
            (other / name / "run.json").write_text(json.dumps(facts), encoding="utf-8")
        with pytest.raises(InputError, match=said):
            find_models([other])
    (other / "b" / "run.json").write_text(json.dumps({**same, "settings": {"seed": 2}}), encoding="utf-8")
    assert len(find_models([other])[0].runs) == 2
    with pytest.raises(InputError, match=r"a/model was given twice; name each run of a model once\."):
        find_models([f"{other / 'a'},{other / 'b'},{other / 'a' / 'model'}"])


def jaccard(one: list[str], other: list[str]) -> float:
    return len({*one} & {*other}) / len({*one, *other})


def test_scores_whose_test_items_were_trained_on_are_marked(runs: Path, data: Path, topics: list[str]) -> None:
    found = isotrope.evaluate(runs / "group" / "seed-1", "sts", data)
    lines = [words_of(line) for line in (runs / "text.txt").read_text(encoding="utf-8").splitlines()]
    tested = {" ".join(words_of(text)) for text in topics[:40]}
    same = {" ".join(words) for words in lines} & tested
    near = {text for text in tested - same if any(jaccard(text.split(), words) >= 0.8 for words in lines)}
    assert topics[2] in near
    assert found.leaks["tasks"]["sts/STS12"] == {"items": 40, "copies": len(same), "near": len(near)}
    assert found.leaks["tasks"]["sts/STS13"]["copies"] == 0
    table = found.table()
    assert "STS12 †" in table
    footnote = f"STS12 {len(same) + len(near)} of 40 ({len(near)} nearly)"
    assert f"† sts: test texts that stand in the training text (text.txt): {footnote}" in table
    assert "training text unknown: tiny" in table
    marks = {task["task"]: task["leaked"] for task in found.tasks}
    assert marks["STS12"]["copies"] == len(same) == 2
    plain = isotrope.evaluate(runs / "group" / "seed-1", "sts", data, leaks=False)
    assert not plain.leaks
    assert "†" not in plain.table()
    assert plain.scores == found.scores


def test_a_verdict_names_the_tests_that_were_trained_on(runs: Path, tiny: Path, data: Path, tmp_path: Path) -> None:
    (verdict,) = isotrope.evaluate(runs / "group" / "seed-1", "sts", data, against=tiny).verdicts
    assert re.search(r"\. But test texts stand in the training text of seed-1: \d+ % of STS12", verdict.sentence)
    pairs = [f"question {row} of somebody\tword{row} answers it" for row in range(30)]
    write(tmp_path / "pairs.tsv", "question\tanswer", pairs)
    asked = {"texts": tmp_path / "pairs.tsv", "against": tiny}
    clean = isotrope.evaluate(runs / "group" / "seed-1", "retrieval", **asked)
    assert "But" not in clean.verdicts[0].sentence
    assert "average of sets" not in clean.table()  # there is one set


def test_clustered_and_damaged_texts_are_looked_for_too(runs: Path, tmp_path: Path, topics: list[str]) -> None:
    """The training text holds the first two topics, and nearly the third."""
    labelled = [f"{row // 8 % 2}\t{text}" for row, text in enumerate(topics[:40])]
    write(tmp_path / "clustering" / "known.tsv", "label\tsentence", labelled)
    strange = [f"{row % 2}\tno boat {row} has ever come here by night" for row in range(20)]
    write(tmp_path / "clustering" / "strange.tsv", "label\tsentence", strange)
    pairs = [f"a\t{topics[row]}\tthe second text has number {row}\t{row % 6}" for row in range(40)]
    write(tmp_path / "sts" / "stsb.test.tsv", "subset\tsentence1\tsentence2\tscore", pairs)
    found = isotrope.evaluate(runs / "group" / "seed-1", "clustering,robustness", tmp_path)
    counts = found.leaks["tasks"]
    assert counts["clustering/known"]["copies"] == counts["robustness/changes"]["copies"] == 2
    assert counts["clustering/known"]["near"] == counts["robustness/changes"]["near"] >= 1
    assert counts["clustering/strange"] == {"items": 20, "copies": 0, "near": 0}
    assert counts["robustness/ranking"] == {"items": 40, "copies": 0, "near": 0}  # it takes the second texts alone
    table = found.table()
    assert "known †" in table
    assert "strange †" not in table
    assert "† robustness: test texts that stand in the training text (text.txt): changes" in table
    marks = {(task["suite"], task["task"]): task["leaked"] for task in found.tasks}
    assert marks["clustering", "known"] == counts["clustering/known"]
    assert all(marks["robustness", task] for task in ("changes", "ranking", "average"))


def test_rows_that_are_not_called_by_their_task_are_marked_too(
    runs: Path, data: Path, tmp_path: Path, topics: list[str]
) -> None:
    rows = [(text, str(row // 8 % 2)) for row, text in enumerate(topics[:80])]
    write(tmp_path / "test.tsv", "text\tlabel", [f"{text}\t{label}" for text, label in rows[:40]])
    model = runs / "group" / "seed-1"
    linear = isotrope.evaluate(model, "linear", texts=rows, test=tmp_path / "test.tsv").table()  # type: ignore[arg-type]
    assert all(f"{title} †" in linear for title in ("linear, standardised", "linear, as they are", "k-NN"))
    assert "commonest class †" not in linear
    asked = [f"{topics[n // 4]}\t{topics[n + 100]}\t{n % 4 == 0:d}" for n in range(40)]
    write(tmp_path / "asked.tsv", "question\tsentence\tlabel", asked)
    answers = isotrope.evaluate(model, "answers", texts=tmp_path / "asked.tsv").table()
    assert "encoder †" in answers
    assert "TF-IDF †" not in answers
    held = [f"{part}\t{row % 2}\t{text}" for part in ("train", "dev", "test") for row, text in enumerate(topics[:40])]
    write(tmp_path / "probing" / "top_dependents.tsv", "split\tlabel\tsentence", held)
    probing = isotrope.evaluate(model, "probing", tmp_path, tasks=["TopConst"], protocol="senteval-fast").table()
    assert "TopConst (top_dependents) †" in probing


def test_translations_are_looked_for_on_both_sides(runs: Path, tmp_path: Path, topics: list[str]) -> None:
    """The training text holds the first two topics: once they are the English side, once the other one."""
    rows = [f"eng\t{text}\tno boat {row} has come by night" for row, text in enumerate(topics[:20])]
    rows += [f"deu\tkein Boot {row} kam je bei Nacht\t{text}" for row, text in enumerate(topics[:20])]
    rows += [f"fra\taucun bateau {row} la nuit\tno boat {row} has come by night" for row in range(20)]
    write(tmp_path / "parallel" / "tatoeba_eng.tsv", "language\tsentence\tenglish", rows)
    found = isotrope.evaluate(runs / "group" / "seed-1", "bitext", tmp_path)
    counts = found.leaks["tasks"]
    assert [counts[f"bitext/{name}"]["copies"] for name in ("deu", "eng", "fra")] == [2, 2, 0]
    assert all(counts[f"bitext/{name}"]["items"] == 40 for name in ("deu", "eng", "fra"))
    table = found.table()
    assert "deu †" in table
    assert "fra †" not in table
    assert "† bitext: test texts that stand in the training text (text.txt): deu" in table


def test_leaks_are_counted_once_for_the_same_files(
    runs: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from isotrope.evaluation import leak_marks

    monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path))
    judged = {"sts/one": ["a chef bakes good bread", "two words"]}
    text = tmp_path / "text.jsonl"
    text.write_text('{"text": "A chef bakes good bread."}\n', encoding="utf-8")
    first = leak_marks.count_leaks([text], judged)
    assert first == {"sts/one": {"items": 1, "copies": 1, "near": 0}}
    (kept,) = (tmp_path / "leaks").glob("*.json")
    monkeypatch.setattr(leak_marks, "_search", lambda *given: pytest.fail("looked again"))
    assert leak_marks.count_leaks([text], judged) == first
    monkeypatch.undo()
    monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path))
    kept.write_text("{", encoding="utf-8")
    with caplog.at_level(logging.INFO, logger="isotrope"):
        assert leak_marks.count_leaks([text], judged) == first
    assert "damaged" in caplog.text


def test_the_text_of_a_shipped_model_is_unknown(tiny: Path, data: Path) -> None:
    found = isotrope.evaluate(tiny, "sts", data)
    assert "training text unknown: tiny." in found.table()
    assert {task["leaked"] for task in found.tasks} == {"training text unknown"}


def test_a_constant_encoder_gets_chance(tiny: Path, data: Path) -> None:
    encoder = isotrope.load(tiny)
    encoder.encode = lambda texts, **named: np.ones((len(texts), 4), np.float32)  # type: ignore[method-assign]
    found = isotrope.evaluate(encoder, "sts", data, against=tiny)
    scores = found.scores["sts"]
    assert all(scores[task]["spearman"] == scores[task]["pearson"] == 0.0 for task in TASKS)
    assert all(scores[task]["low"] <= 0.0 <= scores[task]["high"] for task in TASKS)
    assert "NaN" not in json.dumps(found.to_dict())
    assert found.verdicts[0].tasks[0].score == 0.0


def test_an_encoder_of_nan_is_refused_by_every_suite(tiny: Path, data: Path) -> None:
    encoder = isotrope.load(tiny)
    encoder.encode = lambda texts, **named: np.full((len(texts), 4), np.nan, np.float32)  # type: ignore[method-assign]
    for suite in ("sts", "transfer", "retrieval", "answers"):
        with pytest.raises(InputError, match="NaN or infinite vectors"):
            isotrope.evaluate(encoder, suite, data)


def test_the_command(tiny: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["evaluate", str(tiny), "--suite", "sts,retrieval", "--data-dir", str(data), "--against", str(tiny)]
    with pytest.raises(SystemExit) as stop:
        main([*given, "--against", str(tiny), "--no-leaks", "--json", str(tmp_path / "out.json")])
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    assert "tiny against tiny (3): sts" in printed
    found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert list(found["scores"]) == list(found["protocol"]) == ["sts", "retrieval"]
    assert "leaks" not in found
    assert len([one for one in found["verdicts"] if one["suite"] == "sts"]) == 2
    with pytest.raises(SystemExit) as stop:
        main(["evaluate", str(tiny), "--data-dir", str(data), "--against", str(tmp_path / "nowhere")])
    assert stop.value.code == 2
    assert "no such model folder" in capsys.readouterr().err
