"""One public surface: every command is a function at ``isotrope.`` with the same name, parameters and defaults."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

import isotrope
from isotrope import api
from isotrope.cli import app, main

COMMANDS = {
    (command.name or command.callback.__name__): command.callback
    for command in app.registered_commands
    if command.callback is not None
}
# How the answer is shown, and where parameters are read from, are the command line's own affairs.
OF_THE_TERMINAL = {"context", "as_json", "json_file", "markdown", "config"}
OF_A_RECIPE = {"train": {"sources"}}  # a list of mappings is no flag
ROOMS = ("methods", "report", "search")  # callable rooms


def verb(command: str) -> Any:
    return getattr(isotrope, command.replace("-", "_"))


def parameters(function: Any) -> dict[str, inspect.Parameter]:
    found = inspect.signature(function).parameters
    return {name: one for name, one in found.items() if one.kind is not inspect.Parameter.VAR_KEYWORD}


def test_the_commands_of_the_contract_are_there() -> None:
    expected = (
        "methods train evaluate check leaks encode compare fit-space pretrain search report mine paraphrase links "
        "complete distil doctor index serve predict push export"
    )
    assert set(COMMANDS) == set(expected.split())


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_command_and_its_function_have_the_same_parameters(command: str) -> None:
    typed = {name: one for name, one in parameters(COMMANDS[command]).items() if name not in OF_THE_TERMINAL}
    called = parameters(verb(command))
    assert set(typed) == set(called) - OF_A_RECIPE.get(command, set())


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_command_and_its_function_have_the_same_defaults(command: str) -> None:
    called = parameters(verb(command))
    for name, one in parameters(COMMANDS[command]).items():
        if name in OF_THE_TERMINAL or (command, name) == ("train", "model"):  # a recipe may name another model
            continue
        if one.default is inspect.Parameter.empty:
            continue  # the terminal may ask for what a function can do without: a file to write to
        several = called[name].kind is inspect.Parameter.VAR_POSITIONAL
        expected = None if several else called[name].default
        assert one.default == expected or [expected] == one.default or (not one.default and not expected), name


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_command_takes_free_settings_where_its_function_does(command: str) -> None:
    free = any(
        one.kind is inspect.Parameter.VAR_KEYWORD for one in inspect.signature(verb(command)).parameters.values()
    )
    assert free == ("context" in inspect.signature(COMMANDS[command]).parameters)


def test_a_verb_that_passes_its_parameters_on_has_those_of_its_room() -> None:
    from isotrope.comparison.line_up import plan_comparison
    from isotrope.encoders.loading import load
    from isotrope.report.build import make_report
    from isotrope.search.mining import mine
    from isotrope.training.plan import make_plan
    from isotrope.training.source_plan import plan_sources

    for public, own in ((api.report, make_report), (api.mine, mine), (api.load, load)):
        here, there = parameters(public), parameters(own)
        assert [(one.name, one.kind, one.default) for one in here.values()] == [
            (one.name, one.kind, one.default) for one in there.values()
        ]
    assert list(parameters(api.compare)) == list(
        parameters(plan_comparison)
    )  # methods may be left out to read a file back
    whole, alone = (list(parameters(one)) for one in (api.train, make_plan))
    own = [name for name in alone if name != "adapts"]  # which comparisons and sources say, and no user
    assert whole == [*own, "sources"]  # which take the place of method and data
    shared = [name for name in parameters(plan_sources) if name != "given"]
    assert [name for name in whole if name in shared] == shared


def test_every_public_name_exists_and_is_listed() -> None:
    for name in isotrope.__all__:
        assert getattr(isotrope, name) is not None
        assert name in dir(isotrope)
    assert {"Encoder", "Run", "Results", "InputError", "load"} <= set(isotrope.__all__)
    assert issubclass(isotrope.InputError, ValueError)
    with pytest.raises(AttributeError, match="no attribute 'no_such_verb'"):
        _ = isotrope.no_such_verb


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_that_shares_its_name_with_a_verb_is_both(name: str) -> None:
    room = getattr(isotrope, name)
    assert isinstance(room, ModuleType)
    assert inspect.signature(room) == inspect.signature(getattr(api, name))


def test_cards_of_methods_spaces_and_tactics_and_their_filters() -> None:
    cards = isotrope.methods()
    assert {card.kind for card in cards} == {"training", "space", "optimiser", "head"}
    assert len({card.name for card in cards}) == len(cards)
    wanted = [card.name for card in cards if "pairs" in (card.needs, *getattr(card, "accepts", ()))]
    assert [card.name for card in isotrope.methods(needs="pairs")] == wanted
    assert {"cert", "simcse-supervised"} <= set(wanted)  # the latter needs triples, and pairs will do
    assert 0 < len(wanted) < len(cards)
    with pytest.raises(isotrope.InputError, match="No method needs 'pears'; did you mean 'pairs'"):
        isotrope.methods(needs="pears")
    with pytest.raises(isotrope.InputError, match="Unknown family 'no such'"):
        isotrope.methods(family="no such")


@pytest.mark.parametrize(
    ("name", "setting"), [("simcse", "temperature"), ("whitening", "k"), ("child-tuning", "child_p")]
)
def test_a_method_is_described_with_its_settings(name: str, setting: str) -> None:
    described = isotrope.methods(name)
    assert described.card.name == name
    assert setting in [one.name for one in described.settings]
    assert described.to_dict()["settings"] == described.rows()


def test_answers_are_dataclasses_with_a_dictionary_and_rows(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    encoded = isotrope.encode(tiny, sentences, tmp_path / "v.npy")
    assert encoded.to_dict() == {
        "output": str(tmp_path / "v.npy"),
        "rows": 400,
        "dimension": 32,
        "empty_left_out": 49,
        "left_out": str(tmp_path / "v.left_out.txt"),
        "cut": 0,
    }
    fitted = isotrope.fit_space("standardise", tiny, sentences, tmp_path / "model")
    assert fitted.to_dict() == {
        "space": "standardise",
        "output": str(tmp_path / "model"),
        "texts": 400,
        "dimension": 32,
    }
    assert fitted.encoder is not None
    for answer in (encoded, fitted):
        assert is_dataclass(answer)
        assert answer.rows() == [answer.to_dict()]
    in_memory = isotrope.fit_space("standardise", tiny, sentences)
    assert isinstance(in_memory, isotrope.Encoder)
    assert in_memory.fingerprint() == isotrope.load(tmp_path / "model").fingerprint()
    hits = isotrope.search(tiny, sentences, "the pilot lands the rocket", top=2)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_the_pooling_of_an_encoder_in_memory_is_fixed(tiny: Path, sentences: Path) -> None:
    with pytest.raises(isotrope.InputError, match="pooling of an encoder in memory is fixed"):
        isotrope.fit_space("standardise", isotrope.load(tiny), sentences, pooling="cls")


@pytest.mark.parametrize(
    ("name", "sentence"), [("whitening", "fitted, not trained"), ("child-tuning", "give child_tuning")]
)
def test_what_is_no_method_to_train_is_named(name: str, sentence: str, sentences: Path) -> None:
    with pytest.raises(isotrope.InputError, match=sentence):
        isotrope.train(name, sentences)


def light(code: str) -> str:
    """Run code in a fresh Python and return what it printed; torch must not be imported at its end."""
    checked = f"{code}\nimport sys\nassert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", checked], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_package_the_verbs_and_the_command_line_import_nothing_heavy() -> None:
    light("import isotrope, isotrope.api, isotrope.cli; isotrope.train, isotrope.methods, isotrope.search")


def test_what_names_and_files_tell_is_refused_before_torch_is_imported(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}", encoding="utf-8")
    text, run = str(tmp_path / "a.txt"), str(tmp_path / "run")
    (tmp_path / "bad.yaml").write_text("a: [1", encoding="utf-8")
    refused = [
        (["train", "simcse", "nowhere.txt"], "no such file"),
        (["train", "simcse", text, "--config", str(tmp_path / "bad.yaml")], "not a YAML file"),
        (["train", "simcse", text, "--eval-data", "nowhere.tsv"], "no such file"),
        (["train", "simcse", text, "--output", run], "(--resume, --output)"),
        (["train", "simcse", text, "--output", text], "a file stands"),
        (["train", "simcse", text, "--resume"], "(--output)"),
        (["pretrain", text, "--output", run], "a run is here already"),
        (["pretrain", "nowhere.txt", "--output", str(tmp_path / "x")], "no such file"),
        (["encode", "builtin", text, "--output", "v.csv"], "(--output)"),
        (["encode", "builtin", "nowhere.txt", "--output", "v.npy"], "no such file"),
        (["search", "builtin", "nowhere.txt", "q"], "no such file"),
        (["fit-space", "whitening", "builtin", "nowhere.txt", "--output", "x"], "no such file"),
        (["mine", "nowhere.tsv", "--output", "x.tsv"], "no such file"),
        (["compare", text, "sentences=nowhere.txt", "--methods", "simcse"], "nowhere.txt: no such file"),
        (["report", "builtin", "--text", "nowhere.txt", "--output", "r.html"], "no such file"),
        (["paraphrase", text, "--output", "x.csv"], "(--output)"),
        (["check", "nowhere.txt"], "no such file"),
        (["check", text, "--batch-size", "1"], "(--batch-size)"),
        (["leaks", "nowhere.txt"], "no such file"),
        (["links", "nowhere.xml", "--output", "x.tsv"], "no such file"),
        (["links", text, "--output", "x.csv"], "(--output)"),
        (["methods", "--json", "simcse"], "NAME goes before --json"),
    ]
    code = f"""
import contextlib, io
from isotrope.cli import main
for words, sentence in {refused!r}:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            main(words)
    except SystemExit as stop:
        assert stop.code == 2, (words, stop.code)
    assert sentence in said.getvalue(), (words, said.getvalue())
"""
    light(code)


@pytest.mark.parametrize("module", ["isotrope", "isotrope.cli"])
def test_the_program_runs_as_a_module(module: str) -> None:
    told = subprocess.run([sys.executable, "-m", module, "--version"], check=True, capture_output=True, text=True)
    assert told.stdout.strip() == isotrope.__version__
    usage = subprocess.run([sys.executable, "-m", module, "train"], check=False, capture_output=True, text=True)
    assert usage.returncode == 2
    assert usage.stderr.startswith("isotrope: ")


def test_every_option_has_a_help_text_in_whole_words(capsys: pytest.CaptureFixture[str]) -> None:
    group = typer.main.get_command(app)
    for command in group.commands.values():  # type: ignore[attr-defined]
        assert command.help
        for option in command.params:
            assert option.name == "help" or getattr(option, "help", None), (command.name, option.name)
            assert not str(getattr(option, "help", "")).startswith("Of "), (command.name, option.name)
    with pytest.raises(SystemExit):
        main(["evaluate", "--help"])
    assert "MODEL" in capsys.readouterr().out
