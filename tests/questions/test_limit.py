"""A trial run asks only the first questions of each split."""

from answer_tables import questions_table

from persistcal.questions.question_list import limit_questions


def test_a_limit_keeps_the_first_questions_of_each_split_that_are_not_excluded():
    questions = questions_table(n_train=4, n_test=4)
    questions.loc[0, "excluded"] = True
    questions.loc[7, "split"] = "few_shot"
    limited = limit_questions(questions.iloc[::-1], 2).sort_values("index")
    # q0 is excluded: q1 and q2 are the first two of train, q4 and q5 of test
    expected = ["train", "train", "train", "unused", "test", "test", "unused", "few_shot"]
    assert limited["split"].tolist() == expected
    assert limit_questions(questions, None) is questions
