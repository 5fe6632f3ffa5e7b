"""Ask a judge request by request, several at once, and keep each reply as it comes."""

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import partial

from persistcal.judge.labels import JudgeError
from persistcal.judge.prompt import asked_together
from persistcal.judge.reply import (
    REFUSAL_CODES,
    Replies,
    Reply,
    check_labelled,
    no_labels,
    read_reply,
)
from persistcal.judge.settings import JudgeSettings
from persistcal.server.client import ModelServer, in_json
from persistcal.server.errors import ServerError, UnreadableError
from persistcal.server.spending import Body, endpoint_of
from persistcal.store.paid import Ledger

log = logging.getLogger(__name__)


def ask_one_by_one(
    server: ModelServer,
    replies: Replies,
    ledger: Ledger,
    bodies: Mapping[str, Body],
    settings: JudgeSettings,
) -> None:
    """Ask with several requests on their way at once; keep each reply as it comes."""
    if not bodies:
        return
    cost = settings.budget.plan(bodies.values(), ledger)
    ledger.add(settings.model, len(bodies), cost * len(bodies), "asked")
    incoming = _Incoming(replies, bodies)
    try:
        _ask_all(server, bodies, incoming.keep, settings.concurrency)
    finally:
        try:
            incoming.keep_held()
        finally:
            lost = len(bodies) - incoming.n
            ledger.add(settings.model, -lost, -cost * lost, "not answered")
            log.info("The judge replied to %d of %d requests", incoming.n, len(bodies))


def _ask_all(
    server: ModelServer,
    bodies: Mapping[str, Body],
    keep: Callable[[str, Reply], None],
    concurrency: int,
) -> None:
    """Pass the key and reply of each of `bodies` to `keep` as they come.

    After a failure, of the server or of `keep`, nothing new is asked, but
    replies on their way are still kept before it is raised: they are paid for.
    `keep` is called in the thread that got the reply, so not even an
    interrupt of the main thread comes in between.
    """

    def ask_and_keep(key: str, body: Body) -> None:
        keep(key, _ask_one(server, key, body))

    def give_up() -> None:
        server.stop()
        for future in asked:
            future.cancel()

    asked: list[Future[None]] = []
    failure: BaseException | None = None
    with ThreadPoolExecutor(concurrency) as pool:
        asked += [pool.submit(ask_and_keep, key, body) for key, body in bodies.items()]
        try:
            for done in as_completed(asked):
                if not done.cancelled() and (error := done.exception()):
                    failure = failure or error
                    give_up()
        finally:
            give_up()
    if failure:
        raise failure


def _ask_one(server: ModelServer, key: str, body: Body) -> Reply:
    """Return the reply to the request `body`; one without a label is left to a person."""
    together = asked_together(key)
    read = in_json(partial(read_reply, together=together))
    try:
        reply = server.call(partial(server.send, "post", endpoint_of(body), read, body=body))
    except UnreadableError as error:
        return no_labels(together, "malformed", error.said)
    except ServerError as error:
        if error.code in REFUSAL_CODES:
            return no_labels(together, "refusal", error.said)
        raise
    return reply._replace(text=server.quote(reply.text))


class _Incoming:
    """Replies as they come, from several threads.

    They are kept at once, but for those before the first label: perhaps all are rubbish.
    """

    def __init__(self, replies: Replies, bodies: Mapping[str, Body]) -> None:
        self._replies, self._bodies = replies, bodies
        self._held: dict[str, Reply] = {}
        self._labelled = self._rubbish = False
        self._lock = threading.Lock()
        self.n = 0

    def keep(self, key: str, reply: Reply) -> None:
        """Take one reply, and refuse to go on when none of the first has a label."""
        with self._lock:
            self.n += 1
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
        """Keep the replies that are held: one has a label, or none will come any more."""
        held, self._held = self._held, {}
        self._replies.put(held, self._bodies)
