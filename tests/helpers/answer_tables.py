"""Tables of a few questions and their candidate answers."""

import pandas as pd

# Parameters of the job `judge_answers` without a server
LEXICAL = {
    "judged_clusters": None,
    "judge": {"backend": "lexical"},
    "reached": {},
    "folder": "",
    "noted": "",
}


def questions_table(n_train=18, n_test=6):
    n = n_train + n_test
    return pd.DataFrame(
        {
            **{"question_id": [f"q{i}" for i in range(n)], "index": range(n)},
            "split": ["train"] * n_train + ["test"] * n_test,
            "question": [f"Which country is city {'x' * (i % 5)}{i} in?" for i in range(n)],
            **{"references": [["Norway"]] * n, "any_of": False, "category": ""},
            **{"excluded": False, "options": None, "gold": None, "truths": None},
        }
    )


def clusters_table(answers=("Norway", "Peru, South America")):
    ids = questions_table()["question_id"]
    rows = [(i, c, answers[c], 0.6 - 0.3 * c, [answers[c]]) for i in ids for c in (0, 1)]
    names = ["question_id", "cluster", "answer", "probability", "members"]
    frame = pd.DataFrame(rows, columns=names)
    return frame[frame["question_id"] != "q20"]  # a test question without an answer
