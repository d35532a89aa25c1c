"""The routes against the encoder itself: the same vectors in every shape, every refusal in one sentence."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.encoders.encoder import Encoder
from isotrope.serving.served_model import ServedModel, open_models, trained_widths
from isotrope.serving.service import Service
from isotrope.serving.service_limits import Limits

TEXTS = ["the chef bakes bread", "die Köchin bäckt", "厨师烤面包", "🍞 and soup", "the " * 200 + "end"]


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_openai_gives_the_encoders_vectors_at_unit_length(server: Any, encoder: Encoder, encoding: str) -> None:
    answer = server.ask("/v1/embeddings", {"model": "tiny", "input": TEXTS, "encoding_format": encoding})
    assert answer.status == 200
    rows = [row["embedding"] for row in answer.body["data"]]
    found = [np.frombuffer(base64.b64decode(row), "<f4") if encoding == "base64" else np.array(row) for row in rows]
    assert np.allclose(found, unit(encoder.encode(TEXTS)), atol=1e-5)
    assert [row["index"] for row in answer.body["data"]] == list(range(len(TEXTS)))
    lengths = [len(encoder.tokenizer(text)["input_ids"]) for text in TEXTS]
    read = sum(min(length, encoder.max_length) for length in lengths)
    assert answer.body["usage"] == {"prompt_tokens": read, "total_tokens": read, "cut_inputs": 1}
    assert answer.headers["x-cut-inputs"] == "1"


def test_embed_gives_raw_vectors_on_demand_and_similarity_their_cosines(server: Any, encoder: Encoder) -> None:
    raw = encoder.encode(TEXTS)
    assert np.allclose(server.vectors(TEXTS, normalize=False), raw, atol=1e-5)
    assert np.allclose(server.vectors(TEXTS), unit(raw), atol=1e-5)
    asked = {"inputs": {"source_sentence": TEXTS[0], "sentences": TEXTS[1:]}}
    assert np.allclose(server.ask("/similarity", asked).body, unit(raw)[1:] @ unit(raw)[0], atol=1e-5)


def test_one_text_gives_the_vector_that_it_has_among_others(server: Any) -> None:
    together = server.vectors(TEXTS)
    assert np.allclose([server.vectors([text])[0] for text in TEXTS], together, atol=1e-5)
    assert np.allclose(server.ask("/embed", {"inputs": TEXTS[0]}).body, together[:1], atol=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "the chef bakes bread " * 900,
        "x" * 9000,
        " " * 9000 + "bread",
        "面包" * 4000,
        "bread" + " " * 9000 + "soup",
        "a-b." * 3000,
    ],
    ids=["words", "one word", "blanks", "Chinese", "gap", "marks"],
)
def test_a_long_text_has_the_vector_of_its_beginning_as_the_encoder_reads_it(
    server: Any, encoder: Encoder, text: str
) -> None:
    answer = server.ask("/embed", {"inputs": text, "normalize": False})
    assert np.allclose(answer.body, encoder.encode([text]), atol=1e-5)
    cut = len(encoder.tokenizer(text)["input_ids"]) > encoder.max_length
    assert answer.headers["x-cut-inputs"] == str(int(cut))


def test_maps_after_the_pooling_are_served_too(
    tiny: Path, sentences: Path, tmp_path: Path, running_service: Callable[..., Any]
) -> None:
    """Whitening is a Dense module behind the pooling, which one known server drops."""
    import isotrope

    mapped = isotrope.fit_space("whitening", tiny, sentences, tmp_path / "white", k=8).encoder
    (model,) = open_models([tmp_path / "white"])
    assert model.name == "white"
    with running_service(Service([model], Limits())) as found:
        assert np.allclose(found.vectors(TEXTS, normalize=False), mapped.encode(TEXTS), atol=1e-4)
        five = found.ask("/v1/embeddings", {"input": TEXTS[0], "dimensions": 5}).body["data"][0]["embedding"]
        assert np.allclose(five, unit(mapped.encode(TEXTS[:1])[:, :5])[0], atol=1e-4)


def test_dimensions_are_those_that_were_trained(server: Any, tiny: Path) -> None:
    from isotrope.encoders.loading import load

    trained = load(tiny, device="cpu")
    assert trained_widths(trained) == ()
    trained.facts = {"settings": {"matryoshka": "8,16"}}
    assert trained_widths(trained) == (16, 8)
    assert ServedModel("m", trained).check_dimensions(16) == 16
    refused = server.ask("/v1/embeddings", {"input": "a", "dimensions": 16})
    assert refused.status == 422
    assert "'tiny' was not trained for 16 dimensions; it has 32" in refused.body["error"]["message"]
    assert server.ask("/v1/embeddings", {"input": "a", "dimensions": 32}).status == 200


def test_tokens_are_those_of_the_tokenizer(server: Any, encoder: Encoder) -> None:
    answer = server.ask("/tokenize", {"inputs": ["the chef", "soup"]}).body
    assert [[token["id"] for token in row] for row in answer] == encoder.tokenizer(["the chef", "soup"])["input_ids"]
    inner = [token for token in answer[0] if not token["special"]]
    assert "".join("the chef"[token["start"] : token["stop"]] for token in inner) == "thechef"
    bare = server.ask("/tokenize", {"inputs": "the chef", "add_special_tokens": False}).body[0]
    assert [token["id"] for token in bare] == [token["id"] for token in inner]


def test_models_info_and_metrics(server: Any, encoder: Encoder) -> None:
    assert [model["id"] for model in server.ask("/v1/models").body["data"]] == ["tiny", "labelled"]
    assert server.ask("/v1/models/tiny").body["id"] == "tiny"
    info = server.ask("/info").body
    assert (info["model_id"], info["max_input_length"]) == ("tiny", encoder.max_length)
    assert info["model_sha"] == encoder.fingerprint()
    assert (info["index"]["rows"], info["index"]["rerank"]) == (4, True)
    assert "/secret/place" not in json.dumps(info)
    assert server.ask("/health").status == 200
    server.vectors(["counted"])
    lines = server.ask("/metrics").body.splitlines()
    assert any(line.startswith('te_request_count_total{route="/embed",status="200"}') for line in lines)
    assert "te_queue_size 0.0" in lines


def test_predictions_are_ranked_labels(server: Any) -> None:
    one = server.ask("/predict", {"model": "labelled", "inputs": "fresh bread"}).body
    assert one == [{"score": 0.9, "label": "food"}, {"score": 0.1, "label": "other"}]
    for several in (["fresh bread", "a boat"], [["fresh bread"], ["a boat"]]):
        answer = server.ask("/predict", {"model": "labelled", "inputs": several}).body
        assert [row[0]["label"] for row in answer] == ["food", "other"]
    refused = server.ask("/predict", {"inputs": "fresh bread"})
    assert refused.status == 422
    assert "'tiny' keeps no classifier" in refused.body["error"]


def test_search_gives_hits_for_one_query_and_lists_for_several(server: Any) -> None:
    hits = server.ask("/search", {"query": "the bread", "top": 2}).body["hits"]
    assert hits[0]["text"] == "the chef bakes the bread"
    assert len(hits) == 2
    answer = server.ask("/search", {"queries": ["bread", "boat"], "where": "line > 1"}).body["hits"]
    assert [[hit["line"] for hit in row] for row in answer] == [[], [2]]
    refused = server.ask("/search", {"query": "bread", "where": "nonsense"})
    assert (refused.status, refused.body["error"]) == (422, "where 'nonsense' is no filter.")


def test_search_orders_hits_anew_by_their_tokens(
    tmp_path: Path, encoder: Encoder, running_service: Callable[..., Any]
) -> None:
    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    isotrope.index(encoder, tmp_path / "texts.txt", tmp_path / "index")
    with isotrope.open_index(tmp_path / "index", encoder) as index:
        with running_service(Service([ServedModel("tiny", encoder)], Limits(), index)) as found:
            hits = found.ask("/search", {"query": "bread", "top": 2, "rerank": 4}).body["hits"]
            refused = found.ask("/search", {"query": "bread", "top": 4, "rerank": 2})
        expected = index.search("bread", 2, rerank=4)[0]
    assert [hit["line"] for hit in hits] == [hit.line for hit in expected]
    assert hits[0]["score"] == pytest.approx(expected[0].score, abs=1e-4)
    assert (refused.status, refused.body["error"]) == (422, "rerank must be at least 4, not 2.")


def test_search_says_which_passage_was_found(
    tmp_path: Path, encoder: Encoder, running_service: Callable[..., Any]
) -> None:
    body = "The chef bakes the bread. The sailor steers the boat. The pilot lands the rocket."
    (tmp_path / "texts.txt").write_text(f"{body}\n", encoding="utf-8")
    isotrope.index(encoder, tmp_path / "texts.txt", tmp_path / "index", passages=6)
    index = isotrope.open_index(tmp_path / "index", encoder)
    with index, running_service(Service([ServedModel("tiny", encoder)], Limits(), index)) as found:
        (hit,) = found.ask("/search", {"query": "rocket", "mode": "lexical"}).body["hits"]
        facts = found.ask("/info").body["index"]
    assert (hit["passage"]["number"], hit["passage"]["of"]) == (3, 3)
    assert body[hit["passage"]["start"] : hit["passage"]["end"]] == hit["text"]
    assert (facts["passages"], facts["rows"], facts["rerank"]) == (6, 3, True)


def test_without_an_index_search_says_how_to_get_one(
    make_service: Callable[..., Service], running_service: Callable[..., Any]
) -> None:
    with running_service(make_service()) as found:
        answer = found.ask("/search", {"query": "a"})
        assert answer.status == 422
        assert "isotrope index" in answer.body["error"]


BAD: list[tuple[str, Any, int, str]] = [
    ("/embed", b"{", 422, "not JSON: "),
    ("/embed", b"\xff{}", 422, "not UTF-8"),
    ("/embed", b"[1]", 422, "a JSON object"),
    ("/embed", b'{"inputs": NaN}', 422, "NaN is no number"),
    ("/embed", b"[" * 100_000, 422, "nested too deeply"),
    ("/embed", b'{"inputs":' + b"9" * 5000 + b"}", 422, "not JSON that can be read"),
    ("/embed", {}, 422, "'inputs' is missing"),
    ("/embed", {"inputs": []}, 422, "'inputs' is empty"),
    ("/embed", {"inputs": ["a", ""]}, 422, "an empty text (item 1)"),
    ("/embed", {"inputs": ["a", None]}, 422, "item 1 is null"),
    ("/embed", {"inputs": {"a": 1}}, 422, "not an object"),
    ("/embed", {"inputs": "\ud800"}, 422, "half a character"),
    ("/embed", {"inputs": ["a"] * 65}, 413, "has 65 texts; at most 64"),
    ("/embed", {"inputs": "a" * 200_001}, 413, "has 200,001 characters"),
    ("/embed", {"inputs": "a", "normalize": "yes"}, 422, "'normalize' is true or false, not a text"),
    ("/embed", {"inputs": "the " * 500, "truncate": False}, 413, "1 of 1 texts have more than 64 tokens"),
    ("/embed", {"inputs": "a", "prompt_name": "query"}, 422, "has no prompt 'query'"),
    ("/embed", {"inputs": "a", "model": "../../etc/passwd"}, 404, "No model '../../etc/passwd' is served here"),
    ("/embed", {"inputs": "a", "model": "\ud800"}, 404, "No model '\\ud800' is served here"),
    ("/embed", {"inputs": "a", "model": ["tiny"]}, 404, "No model that name"),
    ("/v1/embeddings", {"input": [1, 2, 3]}, 422, "check_embedding_ctx_length=False"),
    ("/v1/embeddings", {"input": [[1, 2], [3]]}, 422, "check_embedding_ctx_length=False"),
    ("/v1/embeddings", {"input": "a", "dimensions": 0}, 422, "a whole number from 1"),
    ("/v1/embeddings", {"input": "a", "dimensions": 1e300}, 422, "a whole number from 1"),
    ("/v1/embeddings", {"input": "a", "encoding_format": "int8"}, 422, "float or base64, not 'int8'"),
    ("/similarity", {"inputs": "a"}, 422, "'source_sentence' and 'sentences'"),
    ("/search", {"query": "a", "mode": "magic"}, 422, "hybrid or dense or lexical"),
    ("/search", {"query": "a", "top": 100_000}, 422, "from 1 to 1,000"),
    ("/search", {"query": "a", "where": 3}, 422, "'where' is a filter"),
    ("/search", {"query": "a", "rerank": 1000}, 422, "from 0 to 100"),
    ("/search", {"query": "a", "queries": ["b"]}, 422, "exclude each other"),
    ("/predict", {"model": "labelled", "inputs": [["a", "b"]]}, 422, "lists of 1 texts"),
    ("/map", {"lines": ["one"]}, 422, "2 to 500 lines"),
    ("/compare", {"first": "a", "second": 3}, 422, "'second' is one text"),
    ("/nowhere", {}, 404, "No route /nowhere"),
    ("/health", {}, 405, "does not take POST"),
]


@pytest.mark.parametrize(("path", "body", "status", "sentence"), BAD)
def test_bad_input_is_one_sentence(server: Any, path: str, body: Any, status: int, sentence: str) -> None:
    answer = server.ask(path, body)
    said = answer.body["error"]
    said = said["message"] if path.startswith("/v1/") else said
    assert answer.status == status, said
    assert sentence in said
    assert "\n" not in said


def test_a_body_over_the_limit_is_refused_and_the_client_sees_it(server: Any) -> None:
    answer = server.ask("/embed", b'{"inputs": "' + b"a" * 5_000_000 + b'"}')
    assert answer.status == 413
    assert "more than 2,000,000 bytes" in answer.body["error"]


def test_a_vector_that_is_zero_or_no_number_is_never_a_200(
    tiny: Path, running_service: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from isotrope.encoders.loading import load

    broken = load(tiny, device="cpu")
    given = {"zero": 0.0, "nan": float("nan"), "fine": 1.0}
    monkeypatch.setattr(
        broken, "encode", lambda texts, **options: np.array([[given[text]] * 32 for text in texts], dtype=np.float32)
    )
    with running_service(Service([ServedModel("broken", broken)], Limits())) as found:
        assert found.ask("/embed", {"inputs": "fine"}).status == 200
        zero = found.ask("/embed", {"inputs": ["fine", "zero"]})
        assert (zero.status, "Item 1 has no word" in zero.body["error"]) == (422, True)
        nan = found.ask("/v1/embeddings", {"input": ["fine", "nan"]})
        assert (nan.status, "NaN or infinity for item 1" in nan.body["error"]["message"]) == (503, True)


def test_a_key_is_asked_for_and_the_page_and_health_are_open(
    make_service: Callable[..., Service], running_service: Callable[..., Any]
) -> None:
    with running_service(make_service(), key=b"correct-horse") as found:
        for path in ("/", "/page.js", "/page.css", "/health"):
            assert found.ask(path).status == 200
        for shown in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic correct-horse"}):
            answer = found.ask("/v1/models", **shown)
            assert answer.status == 401
            assert "The key is missing or wrong" in answer.body["error"]["message"]
        assert found.ask("/metrics").status == 401
        assert found.ask("/v1/models", Authorization="Bearer correct-horse").status == 200


def test_other_sites_cannot_ask_through_a_browser(server: Any) -> None:
    assert server.ask("/health", Host="evil.example").status == 403
    assert server.ask("/embed", {"inputs": "a"}, Origin="http://evil.example").status == 403
    own = f"{server.host}:{server.port}"
    assert server.ask("/embed", {"inputs": "a"}, Origin=f"http://{own}").status == 200


def test_open_requests_are_bounded(make_service: Callable[..., Service], running_service: Callable[..., Any]) -> None:
    import socket

    with running_service(make_service(waiting_requests=2)) as found:
        head = b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
        slow = [socket.create_connection((found.host, found.port)) for _ in range(2)]
        for one in slow:
            one.sendall(head)
        while found.ask("/embed", {"inputs": "a"}).status != 429:
            pass
        answer = found.ask("/embed", {"inputs": "a"})
        assert (answer.status, answer.headers["retry-after"]) == (429, "1")
        assert found.ask("/health").status == 200
        for one in slow:
            one.close()


def test_two_models_of_one_name_and_several_runs_are_refused(tiny: Path) -> None:
    from isotrope.errors import InputError

    with pytest.raises(InputError, match="Two models are named 'tiny'"):
        open_models([tiny, tiny])
    assert [model.name for model in open_models([tiny, f"other={tiny}"])] == ["tiny", "other"]
    with pytest.raises(InputError, match="at least one model"):
        open_models([])
