"""Sentences a second: builtin-static against builtin, TF-IDF, and sentence-transformers on the same static folder.

    python benchmarks/static_speed.py [--sentences N] [--turns N] [--threads N]

All run in this process, in turns; times are processor time, which others on the machine disturb least, and those of a
turn are divided by those of builtin. Times are printed, never asserted.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

import numpy as np
from workbench import Contest, real_sentences, use_threads


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--sentences", type=int, default=1000)
    options.add_argument("--turns", type=int, default=5)
    options.add_argument("--threads", type=int, default=1)
    chosen = options.parse_args()
    use_threads(chosen.threads)
    sentences = real_sentences(chosen.sentences)
    from sentence_transformers import SentenceTransformer

    import isotrope

    small, large = (isotrope.load(name, device="cpu") for name in ("builtin-static", "builtin"))
    with tempfile.TemporaryDirectory() as temporary:
        small.save(Path(temporary) / "static")
        theirs = SentenceTransformer(str(Path(temporary) / "static"), device="cpu")
        difference = np.abs(small.encode(sentences) - theirs.encode(sentences)).max()
        contest = Contest(
            {
                "builtin": lambda: large.encode(sentences),
                "builtin-static": lambda: small.encode(sentences),
                "builtin-static in sentence-transformers": lambda: theirs.encode(sentences),
                "TF-IDF (scikit-learn, fitted)": tf_idf(sentences),
            }
        )
        seconds = contest.run(chosen.turns).processor_seconds
    print(f"{len(sentences):,} sentences, {chosen.threads} thread, largest difference of vectors {difference:.1e}")
    print(f"{'':42} {'sentences/s':>12} {'times builtin':>14}")
    for name, times in seconds.items():
        ratio = statistics.median(base / own for base, own in zip(seconds["builtin"], times, strict=True))
        print(f"{name:42} {len(sentences) / statistics.median(times):>12,.0f} {ratio:>14.1f}")


def tf_idf(sentences: list[str]):
    from sklearn.feature_extraction.text import TfidfVectorizer

    fitted = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit(sentences)
    return lambda: fitted.transform(sentences)


if __name__ == "__main__":
    main()
