"""What is known of a batch of requests on its way, on disk.

A record is there from before the batch is submitted until its results are
kept, so that no job submits again what is on its way. A module of `persistcal`
that does hold a path: being two files is its whole idea.
"""

import json
import uuid
from collections.abc import Mapping
from pathlib import Path

from persistcal.judge.prompt import Body, endpoint_of
from persistcal.store.files import write_whole


class Record:
    """A batch on disk: ``<token>.jsonl`` as uploaded, ``<token>.json`` where it is."""

    def __init__(self, folder: Path, token: str) -> None:
        self.token = token
        self._state = folder / f"{token}.json"
        self._lines = folder / f"{token}.jsonl"

    @classmethod
    def create(cls, folder: Path, bodies: Mapping[str, Body], cost: float) -> "Record":
        """Write down what is about to be submitted."""
        folder.mkdir(parents=True, exist_ok=True)
        record = cls(folder, uuid.uuid4().hex)
        with record._lines.open("w", encoding="utf-8") as file:
            for key, body in bodies.items():
                url = f"/v1{endpoint_of(body)}"
                line = {"custom_id": key, "method": "POST", "url": url, "body": body}
                file.write(json.dumps(line) + "\n")
        record.save(None, cost)
        return record

    @classmethod
    def all_in(cls, folder: Path) -> list["Record"]:
        """Return the records of all batches that are not collected yet."""
        return [cls(folder, path.stem) for path in sorted(folder.glob("*.json"))]

    def save(self, batch_id: str | None, cost: float) -> None:
        """Write the state, whole or not at all."""
        write_whole(self._state, json.dumps({"batch_id": batch_id, "cost": cost}))

    def state(self) -> tuple[str | None, float]:
        """Return the server's id of the batch, if it has one, and the estimated cost."""
        try:
            state = json.loads(self._state.read_text(encoding="utf-8"))
        except FileNotFoundError:  # another job has collected the batch
            return None, 0.0
        return state["batch_id"], state["cost"]

    def upload(self) -> bytes:
        """Return the requests as they are uploaded."""
        return self._lines.read_bytes()

    def bodies(self) -> dict[str, Body]:
        """Return the requests by key."""
        lines = map(json.loads, self.upload().splitlines())
        return {line["custom_id"]: line["body"] for line in lines}

    def endpoint(self) -> str:
        """Return where its requests go, which is one place for all of a batch."""
        return str(json.loads(self.upload().splitlines()[0])["url"])

    def exists(self) -> bool:
        """Whether no job has collected the batch yet."""
        return self._state.exists()

    def remove(self) -> None:
        """Forget the batch."""
        self._state.unlink(missing_ok=True)
        self._lines.unlink(missing_ok=True)
