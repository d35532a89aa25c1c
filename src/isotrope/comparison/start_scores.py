"""What the start of a comparison scores, found in an earlier comparison.json or judged now."""

from __future__ import annotations

from isotrope.comparison.comparison_table import Comparison
from isotrope.comparison.judges import Measures, can_judge_start, judge, protocol
from isotrope.comparison.line_up import FILE, Plan
from isotrope.encoders.encoder import Encoder
from isotrope.progress import hidden


def score_start(encoder: Encoder, fingerprint: str, plan: Plan) -> Measures:
    """Empty where no suite can judge the start: its row is then taken from the runs, before their first step."""
    if not can_judge_start(plan.terms):
        return {}
    file = plan.folder / FILE
    if file.is_file():
        earlier = Comparison.read(file)
        now = (fingerprint, protocol(plan.terms))
        if earlier.start and (earlier.terms.fingerprint, earlier.terms.protocol) == now:
            return earlier.start
    with hidden():
        return judge(encoder, plan.terms, {})
