import pytest

from persistcal.judge.labels import judge_lexically


@pytest.mark.parametrize(
    ("answer", "references", "label"),
    [
        ("USA", ["United States", "USA"], "correct"),
        ("the U.S.A.", ["United States", "USA"], "correct"),
        ("Côte d'Ivoire", ["Cote d’Ivoire", "Cote d'Ivoire"], "correct"),
        ("Guinea", ["Guinea-Bissau"], "incorrect"),
        ("Guinea Bissau", ["Guinea-Bissau"], "correct"),
        ("a", ["United States"], "not_attempted"),
        ("...", ["United States"], "not_attempted"),
        ("Japan", [], "incorrect"),
    ],
)
def test_labels(answer, references, label):
    assert judge_lexically(answer, references) == label
