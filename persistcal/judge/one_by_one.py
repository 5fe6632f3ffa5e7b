"""Ask a judge request by request, with several requests at once."""

import logging
import threading
from collections.abc import Mapping
from functools import partial

from persistcal.judge.batch import WAITING
from persistcal.judge.prompt import JudgeSettings, asked_together
from persistcal.judge.reply import Replies, Reply, check_labelled, no_labels, read_reply
from persistcal.questions.labels import JudgeError
from persistcal.server.client import ModelServer, in_json
from persistcal.server.errors import REFUSAL_CODES, ServerError, UnreadableError
from persistcal.server.spending import Body, ask_at_once, endpoint_of
from persistcal.store.replies import Ledger, hold_lock

log = logging.getLogger(__name__)


def ask_one_by_one(
    server: ModelServer, bodies: dict[str, Body], folder: str, settings: JudgeSettings
) -> None:
    """Send `bodies`, requests by key, to the judge, and keep the replies in `folder`."""
    replies = Replies(folder)
    with hold_lock(f"{folder}/lock", waiting=WAITING):
        missing = replies.missing(bodies)
        incoming = _Incoming(replies, missing)
        try:
            ask_at_once(
                missing,
                partial(_ask_one, server),
                incoming.keep,
                server=server,
                budget=settings.budget,
                ledger=Ledger(f"{folder}/spending.csv"),
                concurrency=settings.concurrency,
            )
        finally:
            incoming.keep_held()


def _ask_one(server: ModelServer, key: str, body: Body) -> Reply:
    """Return the reply to the request `body`; a person decides if it has no label."""
    together = asked_together(key)
    read = in_json(partial(read_reply, together=together))
    try:
        reply = server.call(partial(server.send, "post", endpoint_of(body), read, body=body))
    except UnreadableError as error:
        return no_labels(together, "malformed", error.reply)
    except ServerError as error:
        if error.code in REFUSAL_CODES:
            return no_labels(together, "refusal", error.reply)
        raise
    return reply._replace(text=server.quote(reply.text))


class _Incoming:
    """Replies from several threads, in order of arrival.

    Replies are written at once, except before the first label, because all might be useless.
    """

    def __init__(self, replies: Replies, bodies: Mapping[str, Body]) -> None:
        self._replies, self._bodies = replies, bodies
        self._held: dict[str, Reply] = {}
        self._labelled = self._rubbish = False
        self._lock = threading.Lock()

    def keep(self, key: str, reply: Reply) -> None:
        """Take one reply, and refuse to go on when none of the first has a label."""
        with self._lock:
            self._labelled |= any(reply.labels)
            if self._labelled or not self._rubbish:
                self._held[key] = reply
            if self._labelled:
                self.keep_held()
            elif not self._rubbish:
                try:
                    check_labelled(self._held.values())
                except JudgeError:
                    self._rubbish = True
                    self._held.clear()
                    raise

    def keep_held(self) -> None:
        """Write the waiting replies, once one has a label or all have arrived."""
        held, self._held = self._held, {}
        self._replies.put(held, self._bodies)
