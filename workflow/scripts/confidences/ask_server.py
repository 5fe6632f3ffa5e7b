"""Ask a checkpoint behind an API in words about its answers."""

from functools import partial

from persistcal.answers.served import ApiSettings, Served
from persistcal.confidence.asking import Asking, ask_about_answers, replies_of_server
from persistcal.store.artifacts import Clusters, Questions, Replies
from persistcal.store.jobs import run


def ask_server(
    questions: Questions,
    clusters: Clusters,
    *,
    split: str,
    asking: Asking,
    served: Served,
    api: ApiSettings,
    folder: str,
    kept: str,
) -> Replies:
    """Return the replies about the predictions on a split.

    `folder` is shared by all jobs that ask servers; `kept` has the replies of this checkpoint's
    server.
    """
    asks = partial(replies_of_server, served, api, folder, kept)
    return ask_about_answers(questions, clusters, asks, asking, split)


if __name__ == "__main__":
    run(ask_server, snakemake)
