"""A scorer and a hook of Inspect, which finds them by the entry point of this package.

The scorer asks the model for its confidence after it has answered; the reader of logs takes it
for the column `confidence`. The hook writes the answers of each finished task as a file that
`study.answers` reads where Inspect is not installed.
"""

import logging
import os
import re

from inspect_ai.hooks import Hooks, TaskEnd, hooks
from inspect_ai.log import read_eval_log_async
from inspect_ai.model import ChatMessageUser, get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import TaskState

from persistcal.confidence.said import probability
from persistcal.imports.inspect_logs import STATED, log_rows
from persistcal.store.files import write_whole

log = logging.getLogger(__name__)

FOLDER = "PERSISTCAL_EXPORT"  # environment variable
ASK = (
    "How probable is it that your answer is correct? Reply with nothing but a probability "
    "between 0.0 and 1.0."
)


@scorer(metrics=[mean()], name=STATED)
def stated_confidence(prompt: str = ASK) -> Scorer:
    """Return a scorer that asks the model how probable it is that its answer is correct.

    The `prompt` may ask for percent; a reply that states no probability leaves the sample
    unscored. After Tian et al., "Just Ask for Calibration", EMNLP 2023, in two turns.
    """

    async def score(state: TaskState, target: Target) -> Score:
        asked = [*state.messages, ChatMessageUser(content=prompt)]
        reply = (await get_model().generate(asked)).completion
        stated = probability(reply)
        if stated is None:
            return Score.unscored(explanation=reply, reason="no probability in the reply")
        return Score(value=stated, explanation=reply)

    return score


@hooks(name="answers", description="Writes answers as persistcal reads them")
class WriteAnswers(Hooks):
    """A JSONL file for each finished task, in the folder that PERSISTCAL_EXPORT names."""

    def enabled(self) -> bool:
        """Return whether such a folder is named."""
        return bool(os.environ.get(FOLDER))

    async def on_task_end(self, data: TaskEnd) -> None:
        """Write the answers, labels and confidences of a task."""
        spec = data.log.eval
        name = re.sub(r"[^\w.-]+", "-", f"{spec.model}_{spec.task}_{spec.eval_id}")
        path = f"{os.environ[FOLDER]}/{name}.jsonl"
        # What is handed over may be the header alone.
        whole = await read_eval_log_async(data.log.location)
        scored = {name for sample in whole.samples or [] for name in sample.scores or {}}
        rows = log_rows(whole, labelled=bool(scored - {STATED}))
        write_whole(path, rows.to_json(orient="records", lines=True, force_ascii=False))
        log.info("%d answers written to %s", len(rows), path)
